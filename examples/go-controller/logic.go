package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"sort"
	"strings"
	"time"
)

// buggy switches the four bugs on.
var buggy = os.Getenv("LOGIC") != "fixed"

func hasCode(err error, code int) bool {
	var status StatusError
	return errors.As(err, &status) && status.Code == code
}

// register adds a site to the index that all sites share.
func register(site, title string) {
	for {
		index, err := call[ConfigMap]("GET", maps+"/index", nil)
		if err == nil {
			if index.Data == nil {
				index.Data = map[string]string{}
			}
			index.Data[site] = title
			_, err = call[ConfigMap]("PUT", maps+"/index", index)
		}
		// Bug: the update is lost after a conflict.
		if buggy || !hasCode(err, 409) {
			return
		}
	}
}

// ensureTheme makes the one theme of a site.
func ensureTheme(site string) {
	found, err := call[List]("GET", maps+"?labelSelector="+url.QueryEscape("theme="+site), nil)
	if err != nil || len(found.Items) > 0 {
		return
	}
	var theme ConfigMap
	theme.Metadata.Labels = map[string]string{"theme": site}
	if buggy {
		theme.Metadata.GenerateName = site + "-" // Bug: after a stale list there are two themes.
	} else {
		theme.Metadata.Name = site + "-theme"
	}
	if _, err := call[ConfigMap]("POST", maps, theme); err != nil && !hasCode(err, 409) {
		fmt.Println("could not make a theme:", err)
	}
}

// countPages reads all pages in chunks.
func countPages() int {
	count, token := 0, ""
	for {
		chunk, err := call[List]("GET", maps+"?labelSelector=page&limit=2&continue="+url.QueryEscape(token), nil)
		if err != nil {
			if buggy || !hasCode(err, 410) {
				return count // Bug: the pages after an expired chunk are not counted.
			}
			count, token = 0, ""
			continue
		}
		count += len(chunk.Items)
		if token = chunk.Metadata.Continue; token == "" {
			return count
		}
	}
}

// followPages keeps the names of all pages.
func followPages() {
	known := map[string]bool{}
	publish := func() {
		names := make([]string, 0, len(known))
		for name := range known {
			names = append(names, name)
		}
		sort.Strings(names)
		report("pages", strings.Join(names, " "))
	}
	for {
		version := ""
		// Bug: without this list, a page that was deleted while the watch was cut stays known.
		if !buggy {
			listed, err := call[List]("GET", maps+"?labelSelector=page", nil)
			if err != nil {
				time.Sleep(100 * time.Millisecond)
				continue
			}
			version = listed.Metadata.ResourceVersion
			known = map[string]bool{}
			for _, page := range listed.Items {
				known[page.Metadata.Name] = true
			}
			publish()
		}
		watch(version, func(event Event) {
			if event.Type == "DELETED" {
				delete(known, event.Object.Metadata.Name)
			} else {
				known[event.Object.Metadata.Name] = true
			}
			publish()
		})
		time.Sleep(10 * time.Millisecond)
	}
}
