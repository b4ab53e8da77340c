package main

import (
	"context"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func deployment(namespace string, replicas int32, image string) *appsapply.DeploymentApplyConfiguration {
	labels := map[string]string{"app": "web"}
	container := coreapply.Container().WithName("web").WithImage(image)
	template := coreapply.PodTemplateSpec().WithLabels(labels).
		WithSpec(coreapply.PodSpec().WithContainers(container))
	return appsapply.Deployment("web", namespace).WithSpec(appsapply.DeploymentSpec().
		WithReplicas(replicas).
		WithSelector(metaapply.LabelSelector().WithMatchLabels(labels)).
		WithTemplate(template))
}

func serverSideApply(ctx context.Context, config *rest.Config, namespace string) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	deployments := client.AppsV1().Deployments(namespace)
	first := metav1.ApplyOptions{FieldManager: "first"}
	if _, err = deployments.Apply(ctx, deployment(namespace, 2, "web:1"), first); err != nil {
		return err
	}
	// A second manager conflicts on the fields whose values differ.
	second := metav1.ApplyOptions{FieldManager: "second"}
	change := deployment(namespace, 3, "web:1")
	_, err = deployments.Apply(ctx, change, second)
	if !apierrors.IsConflict(err) {
		return fmt.Errorf("expected a conflict, not %v", err)
	}
	causes := err.(apierrors.APIStatus).Status().Details.Causes
	if len(causes) != 1 || causes[0].Field != ".spec.replicas" {
		return fmt.Errorf("unexpected causes %v", causes)
	}
	second.Force = true
	applied, err := deployments.Apply(ctx, change, second)
	if err != nil {
		return err
	}
	if *applied.Spec.Replicas != 3 {
		return fmt.Errorf("replicas are %d, not 3", *applied.Spec.Replicas)
	}
	// Extract finds the fields of a manager by the schema of the server.
	extracted, err := appsapply.ExtractDeployment(applied, "second")
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(extracted.Spec, change.Spec) {
		return fmt.Errorf("extracted %+v, not %+v", extracted.Spec, change.Spec)
	}
	if extracted, err = appsapply.ExtractDeployment(applied, "first"); err != nil {
		return err
	}
	if extracted.Spec.Replicas != nil || extracted.Spec.Template == nil {
		return fmt.Errorf("the first manager still has replicas, or lost its template: %+v", extracted.Spec)
	}
	// A field that its last manager no longer applies is removed.
	maps := client.CoreV1().ConfigMaps(namespace)
	for _, data := range []map[string]string{{"a": "1", "b": "2"}, {"a": "1"}} {
		held, err := maps.Apply(ctx, coreapply.ConfigMap("settings", namespace).WithData(data), first)
		if err != nil {
			return err
		}
		if !reflect.DeepEqual(held.Data, data) {
			return fmt.Errorf("data are %v, not %v", held.Data, data)
		}
	}
	return nil
}
