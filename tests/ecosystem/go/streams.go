package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/util/exec"
)

// podStreams reads logs, runs commands and forwards a port of a simulated pod, over SPDY and over WebSocket.
func podStreams(ctx context.Context, config *rest.Config, namespace string) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	pods := client.CoreV1().Pods(namespace)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{"kubist.io/logs": "one\ntwo"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
	}
	if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := eventually(ctx, "the pod runs", func() bool {
		found, err := pods.Get(ctx, "web", metav1.GetOptions{})
		return err == nil && found.Status.Phase == corev1.PodRunning
	}); err != nil {
		return err
	}
	logs, err := pods.GetLogs("web", &corev1.PodLogOptions{}).DoRaw(ctx)
	if err != nil || string(logs) != "one\ntwo\n" {
		return fmt.Errorf("logs are %q, %v", logs, err)
	}
	if err := runCommands(ctx, client, config, namespace); err != nil {
		return err
	}
	return forwardPorts(client, config, namespace)
}

func runCommands(ctx context.Context, client kubernetes.Interface, config *rest.Config, namespace string) error {
	options := &corev1.PodExecOptions{Command: []string{"sh"}, Stdin: true, Stdout: true, Stderr: true}
	where := client.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").Name("web").
		SubResource("exec").VersionedParams(options, scheme.ParameterCodec).URL()
	overSPDY, err := remotecommand.NewSPDYExecutor(config, "POST", where)
	if err != nil {
		return err
	}
	overWebSocket, err := remotecommand.NewWebSocketExecutor(config, "GET", where.String())
	if err != nil {
		return err
	}
	for name, executor := range map[string]remotecommand.Executor{"SPDY": overSPDY, "WebSocket": overWebSocket} {
		var stdout, stderr bytes.Buffer
		script := strings.NewReader("echo out; echo err >&2; exit 3\n")
		streams := remotecommand.StreamOptions{Stdin: script, Stdout: &stdout, Stderr: &stderr}
		err := executor.StreamWithContext(ctx, streams)
		var exit exec.CodeExitError
		if !errors.As(err, &exit) || exit.Code != 3 || stdout.String() != "out\n" || stderr.String() != "err\n" {
			return fmt.Errorf("exec over %s: %v, %q, %q", name, err, stdout.String(), stderr.String())
		}
	}
	return nil
}

func forwardPorts(client kubernetes.Interface, config *rest.Config, namespace string) error {
	where := client.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").Name("web").
		SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return err
	}
	overSPDY := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, "POST", where)
	overWebSocket, err := portforward.NewSPDYOverWebsocketDialer(where, config)
	if err != nil {
		return err
	}
	if err := forward(portforward.NewOnAddresses(overSPDY, []string{"127.0.0.1"}, []string{"0:80"},
		make(chan struct{}), make(chan struct{}), io.Discard, io.Discard)); err != nil {
		return fmt.Errorf("port-forward over SPDY: %w", err)
	}
	if err := forward(portforward.NewOnAddresses(overWebSocket, []string{"127.0.0.1"}, []string{"0:80"},
		make(chan struct{}), make(chan struct{}), io.Discard, io.Discard)); err != nil {
		return fmt.Errorf("port-forward over WebSocket: %w", err)
	}
	return nil
}

// forward sends two requests through a forwarded port.
func forward(forwarder *portforward.PortForwarder, err error) error {
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- forwarder.ForwardPorts() }()
	select {
	case <-forwarder.Ready:
	case err := <-failed:
		return err
	case <-time.After(30 * time.Second):
		return errors.New("the port is not ready")
	}
	defer forwarder.Close()
	ports, err := forwarder.GetPorts()
	if err != nil {
		return err
	}
	direct := &http.Client{Transport: &http.Transport{Proxy: nil, DisableKeepAlives: true}, Timeout: 30 * time.Second}
	for range 2 {
		address := url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", ports[0].Local), Path: "/"}
		response, err := direct.Get(address.String())
		if err != nil {
			return err
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || !strings.Contains(string(body), "is simulated") {
			return fmt.Errorf("the response is %q, %v", body, err)
		}
	}
	return nil
}
