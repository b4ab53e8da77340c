// Package controllers has the controller of guestbooks.
package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"kubist.io/guestbook/api"
)

// Finalizer of guestbooks.
const Finalizer = "guestbook.example.com/cleanup"

// GuestbookReconciler keeps one ConfigMap for every replica of a guestbook.
type GuestbookReconciler struct {
	client.Client
}

// Reconcile creates missing pages, deletes surplus ones and updates the status.
func (r *GuestbookReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var book api.Guestbook
	if err := r.Get(ctx, req.NamespacedName, &book); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !book.DeletionTimestamp.IsZero() {
		if controllerutil.RemoveFinalizer(&book, Finalizer) {
			return ctrl.Result{}, r.Update(ctx, &book)
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(&book, Finalizer) {
		return ctrl.Result{}, r.Update(ctx, &book)
	}

	var pages corev1.ConfigMapList
	labels := client.MatchingLabels{"guestbook": book.Name}
	if err := r.List(ctx, &pages, client.InNamespace(book.Namespace), labels); err != nil {
		return ctrl.Result{}, err
	}
	for index := int32(len(pages.Items)); index < book.Spec.Replicas; index++ {
		page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name:      fmt.Sprintf("%s-%d", book.Name, index),
			Namespace: book.Namespace,
			Labels:    labels,
		}, Data: map[string]string{"greeting": book.Spec.Greeting}}
		if err := controllerutil.SetControllerReference(&book, page, r.Scheme()); err != nil {
			return ctrl.Result{}, err
		}
		if err := r.Create(ctx, page); err != nil && !apierrors.IsAlreadyExists(err) {
			return ctrl.Result{}, err
		}
	}
	for index := int(book.Spec.Replicas); index < len(pages.Items); index++ {
		if err := r.Delete(ctx, &pages.Items[index]); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
	}

	if book.Status.ReadyReplicas == book.Spec.Replicas && book.Status.ObservedGeneration == book.Generation {
		return ctrl.Result{}, nil
	}
	book.Status = api.GuestbookStatus{ReadyReplicas: book.Spec.Replicas, ObservedGeneration: book.Generation}
	return ctrl.Result{}, r.Status().Update(ctx, &book)
}

// SetupWithManager registers the controller.
func (r *GuestbookReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&api.Guestbook{}).Owns(&corev1.ConfigMap{}).Complete(r)
}
