package matrix

import (
	"fmt"
	"strings"
	"testing"

	"gridproxy/topology"

	"golang.org/x/net/html"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// TestPageHasNoScript: whatever names, labels and annotations say, they are text on the page, and
// the page loads nothing.
func TestPageHasNoScript(t *testing.T) {
	const evil = `<script>alert(1)</script>`
	s := topology.Snapshot{
		Nodes: map[string]labels.Set{"a": {"zone": `"><img src=x onerror=alert(1)>`}, "b": {"zone": "\x1b[31m" + evil}, evil: {}},
		Services: []*corev1.Service{
			service("ns", evil, `["zone"]`), service(`" onload="alert(1)`, strings.Repeat("x", 1<<20), `["zone"]`), service("ns", "broken", evil),
		},
	}
	var page strings.Builder
	if err := New(s, topology.Config{}, s.Services).WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	if page.Len() > 20_000 {
		t.Errorf("the page has %d bytes", page.Len())
	}
	root, err := html.Parse(strings.NewReader(page.String()))
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for n := range root.Descendants() {
		if n.Type == html.TextNode {
			texts = append(texts, n.Data)
		}
		if n.Type != html.ElementNode {
			continue
		}
		if strings.Contains(" script img link iframe object a form svg base ", " "+n.Data+" ") {
			t.Errorf("the page has an element %s", n.Data)
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "src" || a.Key == "href" || strings.Contains(a.Val, "alert") {
				t.Errorf("element %s has the attribute %s", n.Data, a.Key)
			}
		}
	}
	for _, want := range []string{"ns/" + evil, `"><img src=x onerror=alert(1)>`, `\x1b[31m` + evil} {
		if !strings.Contains(fmt.Sprint(texts), want) {
			t.Errorf("the page does not show %q as text", want)
		}
	}
}
