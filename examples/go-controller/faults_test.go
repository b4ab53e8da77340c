package main

import "testing"

type Fault struct {
	ID   string `json:"id"`
	Hits int    `json:"hits"`
}

// addFault adds a fault rule. The function that it returns removes the rule, and checks that it acted.
func addFault(t *testing.T, rule map[string]any) func() {
	t.Helper()
	fault, err := call[Fault]("POST", "/kubist/v1/faults", rule)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		last, err := call[Fault]("DELETE", "/kubist/v1/faults/"+fault.ID, nil)
		if err != nil || last.Hits == 0 {
			t.Fatal("the rule never acted:", rule, err)
		}
	}
}

func TestConflictLosesNoUpdate(t *testing.T) {
	createMap(t, "index", nil)
	end := addFault(t, map[string]any{
		"verb": "update", "resource": "configmaps", "name": "index", "status": 409, "times": 1,
	})
	register("blog", "Cats")
	end()
	if index, _ := call[ConfigMap]("GET", maps+"/index", nil); index.Data["blog"] != "Cats" {
		t.Error("the index has", index.Data)
	}
}

func TestStaleReadMakesNoSecondTheme(t *testing.T) {
	listed, err := call[List]("GET", maps, nil)
	if err != nil {
		t.Fatal(err)
	}
	ensureTheme("blog")
	end := addFault(t, map[string]any{
		"verb": "list", "resource": "configmaps", "staleRead": listed.Metadata.ResourceVersion,
		"expression": `request.query["labelSelector"] == "theme=blog"`,
	})
	ensureTheme("blog")
	end()
	if count := themes(t); count != 1 {
		t.Error("themes:", count)
	}
}

func TestExpiredListIsCountedWhole(t *testing.T) {
	for _, name := range []string{"a", "b", "c"} {
		makePage(t, name)
	}
	end := addFault(t, map[string]any{
		"verb": "list", "resource": "configmaps", "expireHistory": true, "times": 1,
		"expression": `request.query["continue"] != ""`,
	})
	count := countPages()
	end()
	if count != 3 {
		t.Error("pages:", count)
	}
}

func TestDeletionDuringACutIsNotMissed(t *testing.T) {
	makePage(t, "d")
	makePage(t, "e")
	// The watch is cut. The next one starts when the rule is removed, after the deletion.
	end := addFault(t, map[string]any{
		"verb": "watch", "resource": "configmaps", "cutAfter": 0, "delay": "1h",
	})
	remove("e")
	end()
	makePage(t, "f")
	if pages := reported(); pages != "d f" {
		t.Error("the controller knows", pages)
	}
}
