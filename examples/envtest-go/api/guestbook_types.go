// Package api has the types of the group guestbook.example.com.
package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of the types.
var GroupVersion = schema.GroupVersion{Group: "guestbook.example.com", Version: "v1"}

// GuestbookSpec is the desired state.
type GuestbookSpec struct {
	Replicas int32  `json:"replicas"`
	Greeting string `json:"greeting,omitempty"`
}

// GuestbookStatus is the observed state.
type GuestbookStatus struct {
	ReadyReplicas      int32 `json:"readyReplicas,omitempty"`
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// Guestbook runs a number of copies of a web page.
type Guestbook struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   GuestbookSpec   `json:"spec,omitempty"`
	Status GuestbookStatus `json:"status,omitempty"`
}

// GuestbookList is a list of guestbooks.
type GuestbookList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Guestbook `json:"items"`
}

// DeepCopyObject copies a guestbook.
func (in *Guestbook) DeepCopyObject() runtime.Object {
	out := *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

// DeepCopyObject copies a list.
func (in *GuestbookList) DeepCopyObject() runtime.Object {
	out := *in
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]Guestbook, len(in.Items))
	for index := range in.Items {
		out.Items[index] = *in.Items[index].DeepCopyObject().(*Guestbook)
	}
	return &out
}

// AddToScheme registers the types.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Guestbook{}, &GuestbookList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
