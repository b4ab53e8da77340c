package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// candidate runs an election and sends its name when it leads.
func candidate(
	ctx context.Context, client kubernetes.Interface, namespace, name string, leaders chan<- string,
) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, namespace, "leader", client.CoreV1(),
		client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: name})
	if err != nil {
		return cancel, err
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            lock,
		LeaseDuration:   15 * time.Second,
		RenewDeadline:   10 * time.Second,
		RetryPeriod:     200 * time.Millisecond,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { leaders <- name },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return cancel, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		elector.Run(ctx)
	}()
	return func() { cancel(); <-done }, nil
}

func leaderElection(ctx context.Context, config *rest.Config, namespace string) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	leaders := make(chan string, 2)
	stopFirst, err := candidate(ctx, client, namespace, "first", leaders)
	if err != nil {
		return err
	}
	defer stopFirst()
	if leader := <-leaders; leader != "first" {
		return fmt.Errorf("%s leads", leader)
	}
	stopSecond, err := candidate(ctx, client, namespace, "second", leaders)
	if err != nil {
		return err
	}
	defer stopSecond()
	select {
	case leader := <-leaders:
		return fmt.Errorf("%s leads beside the first", leader)
	case <-time.After(time.Second):
	}
	stopFirst()
	select {
	case <-leaders:
	case <-time.After(14 * time.Second):
		return fmt.Errorf("the second candidate did not take over a released lease")
	}
	lease, err := client.CoordinationV1().Leases(namespace).Get(ctx, "leader", metav1.GetOptions{})
	if err != nil {
		return err
	}
	// Releasing the lease and taking it over are one transition each.
	if *lease.Spec.HolderIdentity != "second" || *lease.Spec.LeaseTransitions < 1 {
		return fmt.Errorf("unexpected lease %v", lease.Spec)
	}
	return nil
}
