// Program ecosystem exercises client-go against the server of KUBECONFIG.
//
// Usage: ecosystem EXERCISE NAMESPACE
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const protobuf = "application/vnd.kubernetes.protobuf"

type exercise func(ctx context.Context, config *rest.Config, namespace string) error

var exercises = map[string]exercise{
	"informer":  informerWithWatchList,
	"restart":   informerSurvivesRestart,
	"apply":     serverSideApply,
	"election":  leaderElection,
	"dynamic":   dynamicClient,
	"discovery": discoveryAndMapper,
	"streams":   podStreams,
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Second)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	fmt.Println("passed")
}

func run(ctx context.Context) error {
	if len(os.Args) != 3 || exercises[os.Args[1]] == nil {
		return fmt.Errorf("usage: %s EXERCISE NAMESPACE", os.Args[0])
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: os.Args[2]}}
	_, err = client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return exercises[os.Args[1]](ctx, config, os.Args[2])
}

// eventually polls until the condition is true or the context ends.
func eventually(ctx context.Context, what string, condition func() bool) error {
	for !condition() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("timed out while waiting: %s", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// recorder notes the requests of a client and the content types of the responses.
type recorder struct {
	mutex sync.Mutex
	lines []string
}

func (r *recorder) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err == nil {
			r.mutex.Lock()
			defer r.mutex.Unlock()
			line := request.Method + " " + request.URL.RequestURI() + " " + response.Header.Get("Content-Type")
			r.lines = append(r.lines, line)
		}
		return response, err
	})
}

// saw tells whether one request contains all parts.
func (r *recorder) saw(parts ...string) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, line := range r.lines {
		found := true
		for _, part := range parts {
			found = found && strings.Contains(line, part)
		}
		if found {
			return true
		}
	}
	return false
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
