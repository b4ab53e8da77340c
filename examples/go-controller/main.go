// A controller with four bugs that ordinary tests do not find. With LOGIC=fixed it has none.
//
// The config map "site" is its configuration: a name and a title. For each new title the controller registers the site,
// makes its theme, counts the pages, and reports the title as handled. It also reports the names of all pages.
package main

import (
	"strconv"
	"time"
)

func main() {
	go followPages()
	handled := ""
	for {
		site, err := call[ConfigMap]("GET", maps+"/site", nil)
		if title := site.Data["title"]; err == nil && title != handled {
			register("blog", title)
			ensureTheme("blog")
			report("count", strconv.Itoa(countPages()))
			report("handled", title)
			handled = title
		}
		time.Sleep(20 * time.Millisecond)
	}
}
