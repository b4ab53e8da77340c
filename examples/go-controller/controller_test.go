package main

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	var report ConfigMap
	report.Metadata.Name = "report"
	if _, err := call[ConfigMap]("POST", maps, report); err != nil {
		panic(err)
	}
	go followPages()
	os.Exit(m.Run())
}

// createMap creates a config map.
func createMap(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	var made ConfigMap
	made.Metadata.Name, made.Metadata.Labels = name, labels
	if _, err := call[ConfigMap]("POST", maps, made); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(name) })
}

func remove(name string) { call[map[string]any]("DELETE", maps+"/"+name, nil) }

func makePage(t *testing.T, name string) {
	t.Helper()
	createMap(t, name, map[string]string{"page": ""})
	waitFor(t, func() bool { return strings.Contains(" "+reported()+" ", " "+name+" ") })
}

// reported returns the names of all pages, as the controller knows them.
func reported() string {
	found, _ := call[ConfigMap]("GET", maps+"/report", nil)
	return found.Data["pages"]
}

func waitFor(t *testing.T, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it did not happen in time")
		}
	}
}

// themes returns the number of themes, and removes them after the test.
func themes(t *testing.T) int {
	found, err := call[List]("GET", maps+"?labelSelector=theme", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, theme := range found.Items {
		t.Cleanup(func() { remove(theme.Metadata.Name) })
	}
	return len(found.Items)
}

func TestSiteIsRegisteredAndHasOneTheme(t *testing.T) {
	createMap(t, "index", nil)
	for _, title := range []string{"Cats", "Dogs"} {
		register("blog", title)
		ensureTheme("blog")
	}
	if index, _ := call[ConfigMap]("GET", maps+"/index", nil); index.Data["blog"] != "Dogs" {
		t.Error("the index has", index.Data)
	}
	if count := themes(t); count != 1 {
		t.Error("themes:", count)
	}
}

func TestPagesAreCountedAndReported(t *testing.T) {
	for _, name := range []string{"a", "b", "c"} {
		makePage(t, name)
	}
	if count := countPages(); count != 3 {
		t.Error("pages:", count)
	}
	remove("b")
	waitFor(t, func() bool { return reported() == "a c" })
}
