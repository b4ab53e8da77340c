package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// history is the list of events that the handlers of an informer received.
type history struct {
	mutex  sync.Mutex
	events []string
}

func (h *history) add(event string, object any) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	configMap := object.(*corev1.ConfigMap)
	h.events = append(h.events, event+" "+configMap.Name+" "+configMap.Data["x"])
}

func (h *history) has(event string) bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for _, seen := range h.events {
		if seen == event {
			return true
		}
	}
	return false
}

func (h *history) handlers() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { h.add("add", object) },
		UpdateFunc: func(_, object any) { h.add("update", object) },
		DeleteFunc: func(object any) {
			if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = gone.Obj
			}
			h.add("delete", object)
		},
	}
}

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"by": "ecosystem"}},
		Data:       map[string]string{"x": value},
	}
}

// informer starts a shared informer for ConfigMaps over protobuf, and waits until it has synced.
func informer(
	ctx context.Context, config *rest.Config, namespace string,
) (*kubernetes.Clientset, cache.SharedIndexInformer, *history, *recorder, error) {
	config = rest.CopyConfig(config)
	config.ContentType = protobuf
	requests := &recorder{}
	config.Wrap(requests.wrap)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	for i := range 5 {
		created := configMap(fmt.Sprintf("before-%d", i), "1")
		if _, err = client.CoreV1().ConfigMaps(namespace).Create(ctx, created, metav1.CreateOptions{}); err != nil {
			return nil, nil, nil, nil, err
		}
	}
	selected := informers.WithTweakListOptions(func(options *metav1.ListOptions) {
		options.LabelSelector = "by=ecosystem"
	})
	factory := informers.NewSharedInformerFactoryWithOptions(
		client, 0, informers.WithNamespace(namespace), selected)
	shared := factory.Core().V1().ConfigMaps().Informer()
	seen := &history{}
	if _, err = shared.AddEventHandler(seen.handlers()); err != nil {
		return nil, nil, nil, nil, err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), shared.HasSynced) {
		return nil, nil, nil, nil, fmt.Errorf("the informer did not sync")
	}
	if found := len(shared.GetStore().ListKeys()); found != 5 {
		return nil, nil, nil, nil, fmt.Errorf("the store has %d objects, not 5", found)
	}
	return client, shared, seen, requests, nil
}

func informerWithWatchList(ctx context.Context, config *rest.Config, namespace string) error {
	client, shared, seen, requests, err := informer(ctx, config, namespace)
	if err != nil {
		return err
	}
	if !requests.saw("GET", "/configmaps?", "sendInitialEvents=true", "watch=true", protobuf+";stream=watch") {
		return fmt.Errorf("no WatchList request in protobuf among %q", requests.lines)
	}
	for _, line := range requests.lines {
		if len(line) > 3 && line[:4] == "GET " && !requests.saw(line, "watch=true") {
			return fmt.Errorf("the informer used a list: %s", line)
		}
	}
	maps := client.CoreV1().ConfigMaps(namespace)
	created, err := maps.Create(ctx, configMap("later", "1"), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	created.Data["x"] = "2"
	if _, err = maps.Update(ctx, created, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if err = maps.Delete(ctx, "later", metav1.DeleteOptions{}); err != nil {
		return err
	}
	// An object that loses the label leaves the informer.
	held, err := maps.Get(ctx, "before-0", metav1.GetOptions{})
	if err != nil {
		return err
	}
	held.Labels = nil
	if _, err = maps.Update(ctx, held, metav1.UpdateOptions{}); err != nil {
		return err
	}
	for _, event := range []string{"add later 1", "update later 2", "delete later 2", "delete before-0 1"} {
		if err = eventually(ctx, event, func() bool { return seen.has(event) }); err != nil {
			return err
		}
	}
	return eventually(ctx, "four objects", func() bool { return len(shared.GetStore().ListKeys()) == 4 })
}

// informerSurvivesRestart prints "synced", waits for a line on standard input while the caller restarts
// the server, and then expects the informer to go on.
func informerSurvivesRestart(ctx context.Context, config *rest.Config, namespace string) error {
	client, _, seen, _, err := informer(ctx, config, namespace)
	if err != nil {
		return err
	}
	fmt.Println("synced")
	if _, err = bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	maps := client.CoreV1().ConfigMaps(namespace)
	if _, err = maps.Create(ctx, configMap("after", "1"), metav1.CreateOptions{}); err != nil {
		return err
	}
	if err = maps.Delete(ctx, "before-1", metav1.DeleteOptions{}); err != nil {
		return err
	}
	for _, event := range []string{"add after 1", "delete before-1 1"} {
		if err = eventually(ctx, event, func() bool { return seen.has(event) }); err != nil {
			return err
		}
	}
	time.Sleep(100 * time.Millisecond)
	seen.mutex.Lock()
	defer seen.mutex.Unlock()
	added := map[string]int{}
	for _, event := range seen.events {
		if added[event]++; added[event] > 1 {
			return fmt.Errorf("event %q came twice: %q", event, seen.events)
		}
	}
	return nil
}
