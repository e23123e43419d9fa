package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// TestReadme: the page about the chart is what make generate writes.
func TestReadme(t *testing.T) {
	t.Parallel()
	h := newHelm(t)
	want, err := Readme(os.DirFS(h.Chart))
	must(t, err)
	if diff := cmp.Diff(want, read(t, filepath.Join(h.Chart, ReadmeFile))); diff != "" {
		t.Errorf("the page is not what values.yaml says (-values +page): run make generate\n%s", diff)
	}
}

// TestReadmeOfValues: a value has its path, type, default and comment; one without is an error.
func TestReadmeOfValues(t *testing.T) {
	t.Parallel()
	chart := func(values string) fstest.MapFS {
		return fstest.MapFS{
			"Chart.yaml": {Data: []byte("description: Nothing.\nkubeVersion: \">=1.29.0-0\"\n")},
			"values.schema.json": {Data: []byte(`{"properties": {
				"mode": {"enum": ["a", "b"]},
				"group": {"properties": {"port": {"$ref": "#/definitions/port"}, "inner": {"properties": {"on": {"type": "boolean"}}}}}
			}, "definitions": {"port": {"type": "integer", "description": "0: any"}}}`)},
			"values.yaml": {Data: []byte(values)},
		}
	}
	got, err := Readme(chart(`# About the file.

# Which mode | way,
# in two lines.
mode: a

# The group.
group:
  port: 0
  inner:
    on: false # whether it is on
`))
	must(t, err)
	for _, want := range []string{
		"Kubernetes 1.29 or later",
		"| `mode` | `a` or `b` | `\"a\"` | Which mode \\| way, in two lines. |\n",
		"\n## group\n\nThe group.\n",
		"| `group.port` | integer | `0` | 0: any |\n",
		"| `group.inner.on` | boolean | `false` | whether it is on |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the page lacks %q:\n%s", want, got)
		}
	}
	for values, want := range map[string]string{
		"mode: a\n":                     "mode needs a type in values.schema.json and a comment in values.yaml",
		"group: {other: 1 }\n":          "group.other needs a type",
		"group: {inner: {on: false}}\n": "group.inner.on needs a type in values.schema.json and a comment",
	} {
		if _, err := Readme(chart(values)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: want an error with %q, got %v", values, want, err)
		}
	}
}
