package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
)

// ConfigMap has the fields that this controller uses.
type ConfigMap struct {
	Metadata struct {
		Name            string            `json:"name,omitempty"`
		GenerateName    string            `json:"generateName,omitempty"`
		ResourceVersion string            `json:"resourceVersion,omitempty"`
		Labels          map[string]string `json:"labels,omitempty"`
	} `json:"metadata"`
	Data map[string]string `json:"data,omitempty"`
}

// List is one chunk of config maps.
type List struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
		Continue        string `json:"continue"`
	} `json:"metadata"`
	Items []ConfigMap `json:"items"`
}

// Event is one change of a watch.
type Event struct {
	Type   string    `json:"type"`
	Object ConfigMap `json:"object"`
}

// StatusError is a response with an error.
type StatusError struct{ Code int }

func (e StatusError) Error() string { return fmt.Sprintf("status %d", e.Code) }

const maps = "/api/v1/namespaces/default/configmaps"

var client = newClient()

func newClient() *http.Client {
	ca, err := os.ReadFile(os.Getenv("KUBIST_CA"))
	if err != nil {
		panic(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true,
	}}
}

// send returns the body of a successful response.
func send(method, path string, body any) (io.ReadCloser, error) {
	var sent io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		sent = bytes.NewReader(raw)
	}
	request, err := http.NewRequest(method, os.Getenv("KUBIST_URL")+path, sent)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("KUBIST_TOKEN"))
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	request.Header.Set("User-Agent", "go-controller/1.0")
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= 400 {
		response.Body.Close()
		return nil, StatusError{response.StatusCode}
	}
	return response.Body, nil
}

// call decodes the response to a request.
func call[T any](method, path string, body any) (T, error) {
	var result T
	found, err := send(method, path, body)
	if err != nil {
		return result, err
	}
	defer found.Close()
	return result, json.NewDecoder(found).Decode(&result)
}

// watch passes the changes of pages on until the connection ends. An empty version starts with the state.
func watch(version string, handle func(Event)) {
	found, err := send("GET", maps+"?watch=1&labelSelector=page&resourceVersion="+version, nil)
	if err != nil {
		return
	}
	defer found.Close()
	events := json.NewDecoder(found)
	for {
		var event Event
		if events.Decode(&event) != nil || event.Type == "ERROR" {
			return
		}
		handle(event)
	}
}

// report publishes a value for the tests.
func report(key, value string) {
	change := map[string]any{"data": map[string]string{key: value}}
	if _, err := call[ConfigMap]("PATCH", maps+"/report", change); err != nil {
		fmt.Println("could not report:", err)
	}
}
