package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadRaw(t *testing.T) {
	const text = `# a comment alone is no document
---
apiVersion: example.com/v1
kind: Odd
metadata: {name: a, namespace: ns}
spec: {x: null}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: b}}
- apiVersion: example.com/v1
  kind: OddList
  items: [{metadata: {name: c}}, {kind: Other, apiVersion: v2, metadata: {name: d}}]
---
{"apiVersion":"v1","kind":"AllowList","metadata":{"name":"e"}}
`
	all, warnings, err := ReadRaw([]string{Stdin}, strings.NewReader(text))
	if err != nil || warnings != nil {
		t.Fatalf("%v; warnings: %v", err, warnings)
	}
	var got []string
	for _, r := range all {
		got = append(got, fmt.Sprintf("%s: %s %s %s", r.Place, r.APIVersion, r.Kind, r.JSON))
	}
	want := []string{
		`standard input: document 1 (Odd ns/a): example.com/v1 Odd {"apiVersion":"example.com/v1","kind":"Odd","metadata":{"name":"a","namespace":"ns"},"spec":{"x":null}}`,
		`standard input: document 2, item 1 (Node b): v1 Node {"apiVersion":"v1","kind":"Node","metadata":{"name":"b"}}`,
		`standard input: document 2, item 2, item 1 (Odd c): example.com/v1 Odd {"metadata":{"name":"c"}}`,
		`standard input: document 2, item 2, item 2 (Other d): v2 Other {"apiVersion":"v2","kind":"Other","metadata":{"name":"d"}}`,
		`standard input: document 3 (AllowList e): v1 AllowList {"apiVersion":"v1","kind":"AllowList","metadata":{"name":"e"}}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestReadRawNamesAll: each thing that is wrong is one line that says where.
func TestReadRawNamesAll(t *testing.T) {
	const text = "[1]\n---\nkind: Odd\n---\na: [\n---\napiVersion: v1\nkind: List\nitems: [{kind: Node, metadata: {name: 7}, apiVersion: v1}, 7]\n"
	_, _, err := ReadRaw([]string{Stdin, "missing.yaml"}, strings.NewReader(text))
	if err == nil {
		t.Fatal("no error")
	}
	want := []string{
		"standard input: document 3: ",
		"standard input: document 1: is not an object; write its apiVersion, kind and metadata",
		"standard input: document 2: apiVersion: is missing, the object is perhaps half written; write one such as v1",
		"standard input: document 4, item 1: metadata.name: is a number; write text, in quotes if it looks like something else",
		"standard input: document 4, item 2: is not an object; write its apiVersion, kind and metadata",
		"missing.yaml: cannot be read: ",
	}
	for _, line := range want {
		if !strings.Contains(err.Error(), line) {
			t.Errorf("missing: %s\nin\n%v", line, err)
		}
	}
}

func TestRawDecode(t *testing.T) {
	const text = `{"apiVersion":"v1","kind":"Odd","metadata":{"name":"a"},"size":1,"size":2,"list":[{"x":"1"}],"unknown":0}`
	all, _, err := ReadRaw([]string{Stdin}, strings.NewReader(text+strings.Replace(text, `"size":1,`, "", 1)+strings.Replace(text, `"1"`, "1", 1)))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range all {
		var into struct {
			APIVersion string         `json:"apiVersion"`
			Kind       string         `json:"kind"`
			Metadata   map[string]any `json:"metadata"`
			Size       int            `json:"size"`
			List       []struct {
				X int `json:"x"`
			} `json:"list"`
		}
		got = append(got, r.Decode(&into).Error())
	}
	const place = "standard input: document "
	want := []string{
		place + `1 (Odd a): list[0].x: is text; write a whole number of at most 64 bits, without quotes`,
		place + `2 (Odd a): list[0].x: is text; write a whole number of at most 64 bits, without quotes`,
		place + `3 (Odd a): duplicate field "size"; keep one`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	all[2].JSON = []byte(strings.Replace(string(all[2].JSON), `"size":1,`, "", 1))
	var into struct {
		Size int `json:"size"`
	}
	if err := all[2].Decode(&into); err == nil || !strings.Contains(err.Error(), place+`3 (Odd a): unknown field "unknown"; correct or remove it`) {
		t.Errorf("an unknown field: %v", err)
	}
}
