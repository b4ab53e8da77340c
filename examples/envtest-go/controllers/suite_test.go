package controllers

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"kubist.io/guestbook/api"
)

var k8sClient client.Client

func TestMain(m *testing.M) {
	ctrl.SetLogger(zap.New(zap.UseDevMode(true)))
	environment := &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join("..", "config", "crd")},
		ErrorIfCRDPathMissing: true,
	}
	config, err := environment.Start()
	check(err)
	check(api.AddToScheme(scheme.Scheme))
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme.Scheme, Metrics: server.Options{BindAddress: "0"},
	})
	check(err)
	check((&GuestbookReconciler{Client: manager.GetClient()}).SetupWithManager(manager))
	ctx, cancel := context.WithCancel(context.Background())
	go func() { check(manager.Start(ctx)) }()
	k8sClient, err = client.New(config, client.Options{Scheme: scheme.Scheme})
	check(err)

	code := m.Run()
	cancel()
	check(environment.Stop())
	os.Exit(code)
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not after 60 s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func newNamespace(t *testing.T) string {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "guestbook-"}}
	if err := k8sClient.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}

func newGuestbook(namespace string, replicas int32) *api.Guestbook {
	return &api.Guestbook{
		ObjectMeta: metav1.ObjectMeta{Name: "book", Namespace: namespace},
		Spec:       api.GuestbookSpec{Replicas: replicas},
	}
}

func pages(t *testing.T, namespace string) []corev1.ConfigMap {
	var found corev1.ConfigMapList
	err := k8sClient.List(t.Context(), &found, client.InNamespace(namespace), client.MatchingLabels{"guestbook": "book"})
	if err != nil {
		t.Fatal(err)
	}
	return found.Items
}

func TestReconcilerKeepsOnePageForEveryReplica(t *testing.T) {
	namespace := newNamespace(t)
	book := newGuestbook(namespace, 3)
	if err := k8sClient.Create(t.Context(), book); err != nil {
		t.Fatal(err)
	}
	if book.Spec.Greeting != "hello" {
		t.Fatalf("the default of the schema is missing: %+v", book.Spec)
	}
	eventually(t, "three pages", func() bool { return len(pages(t, namespace)) == 3 })
	eventually(t, "the status", func() bool {
		check(k8sClient.Get(t.Context(), client.ObjectKeyFromObject(book), book))
		return book.Status.ReadyReplicas == 3 && book.Status.ObservedGeneration == book.Generation
	})
	owner := pages(t, namespace)[0].OwnerReferences[0]
	if owner.UID != book.UID || owner.Controller == nil || !*owner.Controller {
		t.Fatalf("unexpected owner %+v", owner)
	}

	patch := client.MergeFrom(book.DeepCopyObject().(client.Object))
	book.Spec.Replicas = 1
	if err := k8sClient.Patch(t.Context(), book, patch); err != nil {
		t.Fatal(err)
	}
	eventually(t, "one page", func() bool { return len(pages(t, namespace)) == 1 })
}

func TestInvalidGuestbookIsRejected(t *testing.T) {
	err := k8sClient.Create(t.Context(), newGuestbook(newNamespace(t), 6))
	if !apierrors.IsInvalid(err) {
		t.Fatalf("expected Invalid, got %v", err)
	}
}

func TestStaleUpdateConflicts(t *testing.T) {
	book := newGuestbook(newNamespace(t), 0)
	if err := k8sClient.Create(t.Context(), book); err != nil {
		t.Fatal(err)
	}
	stale := book.DeepCopyObject().(*api.Guestbook)
	stale.ResourceVersion = "1"
	if err := k8sClient.Update(t.Context(), stale); !apierrors.IsConflict(err) {
		t.Fatalf("expected Conflict, got %v", err)
	}
}

func TestFinalizerEndsTheDeletion(t *testing.T) {
	book := newGuestbook(newNamespace(t), 1)
	if err := k8sClient.Create(t.Context(), book); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the finalizer", func() bool {
		check(k8sClient.Get(t.Context(), client.ObjectKeyFromObject(book), book))
		return len(book.Finalizers) == 1
	})
	if err := k8sClient.Delete(t.Context(), book); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the guestbook", func() bool {
		return apierrors.IsNotFound(k8sClient.Get(t.Context(), client.ObjectKeyFromObject(book), book))
	})
}

// With KUBIST_CONTROLLERS=* the API server also runs the garbage collector and deletes namespaces.
func TestControllersOfKubistCleanUp(t *testing.T) {
	if os.Getenv("KUBIST_CONTROLLERS") == "" {
		t.Skip("KUBIST_CONTROLLERS is not set")
	}
	namespace := newNamespace(t)
	book := newGuestbook(namespace, 2)
	if err := k8sClient.Create(t.Context(), book); err != nil {
		t.Fatal(err)
	}
	eventually(t, "two pages", func() bool { return len(pages(t, namespace)) == 2 })
	if err := k8sClient.Delete(t.Context(), book); err != nil {
		t.Fatal(err)
	}
	eventually(t, "no pages", func() bool { return len(pages(t, namespace)) == 0 })
	ended := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := k8sClient.Delete(t.Context(), ended); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the namespace", func() bool {
		return apierrors.IsNotFound(k8sClient.Get(t.Context(), client.ObjectKey{Name: namespace}, ended))
	})
}
