package main

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
)

type object = map[string]any

var crds = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// crd creates a CRD whose group is named after the namespace, and waits until it is established.
func crd(ctx context.Context, client dynamic.Interface, namespace string) (schema.GroupVersionResource, error) {
	group := namespace + ".example.com"
	resource := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "gadgets"}
	body := &unstructured.Unstructured{Object: object{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   object{"name": "gadgets." + group},
		"spec": object{
			"group": group,
			"scope": "Namespaced",
			"names": object{"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "shortNames": []any{"gg"}},
			"versions": []any{object{
				"name": "v1", "served": true, "storage": true, "subresources": object{"status": object{}},
				"schema": object{"openAPIV3Schema": object{
					"type": "object",
					"properties": object{
						"spec": object{"type": "object", "properties": object{
							"size":  object{"type": "integer", "minimum": int64(1)},
							"color": object{"type": "string", "default": "red"},
						}},
						"status": object{"type": "object", "properties": object{"ready": object{"type": "boolean"}}},
					},
				}},
			}},
		},
	}}
	if _, err := client.Resource(crds).Create(ctx, body, metav1.CreateOptions{}); err != nil {
		return resource, err
	}
	return resource, eventually(ctx, "established CRD", func() bool {
		held, err := client.Resource(crds).Get(ctx, "gadgets."+group, metav1.GetOptions{})
		if err != nil {
			return false
		}
		conditions, _, _ := unstructured.NestedSlice(held.Object, "status", "conditions")
		for _, condition := range conditions {
			if c := condition.(object); c["type"] == "Established" && c["status"] == "True" {
				return true
			}
		}
		return false
	})
}

func gadget(resource schema.GroupVersionResource, name string, size int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: object{
		"apiVersion": resource.GroupVersion().String(),
		"kind":       "Gadget",
		"metadata":   object{"name": name},
		"spec":       object{"size": size},
	}}
}

func dynamicClient(ctx context.Context, config *rest.Config, namespace string) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	resource, err := crd(ctx, client, namespace)
	if err != nil {
		return err
	}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, nil)
	informer := factory.ForResource(resource)
	informer.Informer()
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.Informer().HasSynced) {
		return fmt.Errorf("the dynamic informer did not sync")
	}
	gadgets := client.Resource(resource).Namespace(namespace)
	created, err := gadgets.Create(ctx, gadget(resource, "g", 1), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if color, _, _ := unstructured.NestedString(created.Object, "spec", "color"); color != "red" {
		return fmt.Errorf("the default is missing: %v", created.Object)
	}
	if _, err = gadgets.Create(ctx, gadget(resource, "bad", 0), metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		return fmt.Errorf("expected an invalid object, not %v", err)
	}
	status := []byte(`{"status":{"ready":true},"spec":{"size":9}}`)
	patched, err := gadgets.Patch(ctx, "g", types.MergePatchType, status, metav1.PatchOptions{}, "status")
	if err != nil {
		return err
	}
	ready, _, _ := unstructured.NestedBool(patched.Object, "status", "ready")
	size, _, _ := unstructured.NestedInt64(patched.Object, "spec", "size")
	if !ready || size != 1 {
		return fmt.Errorf("the status subresource wrote %v", patched.Object)
	}
	applied, err := gadgets.Apply(ctx, "g", gadget(resource, "g", 5), metav1.ApplyOptions{FieldManager: "m", Force: true})
	if err != nil {
		return err
	}
	if applied.GetGeneration() != 2 {
		return fmt.Errorf("generation is %d, not 2", applied.GetGeneration())
	}
	err = eventually(ctx, "the change in the dynamic informer", func() bool {
		held, err := informer.Lister().ByNamespace(namespace).Get("g")
		return err == nil && held.(*unstructured.Unstructured).GetGeneration() == 2
	})
	if err != nil {
		return err
	}
	if err = gadgets.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return err
	}
	list, err := gadgets.List(ctx, metav1.ListOptions{})
	if err == nil && len(list.Items) != 0 {
		err = fmt.Errorf("%d objects are left", len(list.Items))
	}
	return err
}

func discoveryAndMapper(ctx context.Context, config *rest.Config, namespace string) error {
	requests := &recorder{}
	config = rest.CopyConfig(config)
	config.Wrap(requests.wrap)
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	cached := memory.NewMemCacheClient(client)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(cached)
	deployment, err := mapper.RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"})
	if err != nil {
		return err
	}
	if deployment.Resource.Resource != "deployments" || deployment.Scope.Name() != meta.RESTScopeNameNamespace {
		return fmt.Errorf("unexpected mapping %+v", deployment)
	}
	if !requests.saw("GET /apis?", "as=APIGroupDiscoveryList") {
		return fmt.Errorf("discovery is not aggregated: %q", requests.lines)
	}
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	// The mapper reads discovery again after a reset.
	resource, err := crd(ctx, dynamicClient, namespace)
	if err != nil {
		return err
	}
	err = eventually(ctx, "the new kind in discovery", func() bool {
		mapper.Reset()
		found, err := mapper.RESTMapping(schema.GroupKind{Group: resource.Group, Kind: "Gadget"})
		return err == nil && found.Resource == resource
	})
	if err != nil {
		return err
	}
	short, err := restmapper.NewShortcutExpander(mapper, cached, nil).ResourceFor(schema.GroupVersionResource{Resource: "gg"})
	if err != nil || short.Resource != "gadgets" {
		return fmt.Errorf("the short name leads to %v, %v", short, err)
	}
	groups, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		return err
	}
	if len(groups) < 20 || len(lists) < 20 {
		return fmt.Errorf("%d groups and %d lists", len(groups), len(lists))
	}
	version, err := client.ServerVersion()
	if err != nil || version.Minor != "36" {
		return fmt.Errorf("unexpected version %v, %v", version, err)
	}
	openapi, err := client.OpenAPIV3().Paths()
	if err != nil || openapi["apis/apps/v1"] == nil {
		return fmt.Errorf("OpenAPI v3 has %d paths, %v", len(openapi), err)
	}
	_, err = openapi["apis/apps/v1"].Schema("application/json")
	return err
}
