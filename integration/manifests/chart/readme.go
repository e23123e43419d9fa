package chart

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ReadmeFile is the page about the chart, in its folder.
const ReadmeFile = "README.md"

// Readme is the text of ReadmeFile: the values with their comments in values.yaml, and their types
// in values.schema.json.
func Readme(chart fs.FS) (string, error) {
	var about struct{ Description, KubeVersion string }
	var values yaml.Node
	var schema schemaNode
	for _, f := range []struct {
		name string
		read func([]byte) error
	}{
		{"Chart.yaml", func(text []byte) error {
			var file struct {
				Description string `yaml:"description"`
				KubeVersion string `yaml:"kubeVersion"`
			}
			err := yaml.Unmarshal(text, &file)
			about.Description, about.KubeVersion = file.Description, file.KubeVersion
			return err
		}},
		{"values.yaml", func(text []byte) error { return yaml.Unmarshal(text, &values) }},
		{"values.schema.json", func(text []byte) error { return json.Unmarshal(text, &schema) }},
	} {
		text, err := fs.ReadFile(chart, f.name)
		if err == nil {
			err = f.read(text)
		}
		if err != nil {
			return "", fmt.Errorf("reading %s of the chart: %w", f.name, err)
		}
	}
	tables, err := valueTables(values.Content[0], schema)
	if err != nil {
		return "", fmt.Errorf("describing the values of the chart: %w", err)
	}
	return fmt.Sprintf(readmeHead, about.Description, strings.TrimSuffix(strings.TrimPrefix(about.KubeVersion, ">="), ".0-0")) + tables, nil
}

const readmeHead = `# Chart gridproxy

<!-- Made from values.yaml and values.schema.json by make generate: change these. -->

%s

It takes Kubernetes %s or later and helm 3.17 or later. [install.md](../../../docs/install.md) has the commands,
[migrate-from-kube-proxy.md](../../../docs/migrate-from-kube-proxy.md) those for a cluster with kube-proxy, and
[monitoring.md](../../../docs/monitoring.md) is about dashboard and alerts. helm refuses a value that is not listed here, or has another type.
`

// schemaNode is what is read of a JSON schema.
type schemaNode struct {
	Type        string
	Ref         string `json:"$ref"`
	Description string
	Enum        []any
	OneOf       []schemaNode
	Items       *schemaNode
	Properties  map[string]schemaNode
	Definitions map[string]schemaNode
}

// valueRow is a line of a table.
type valueRow struct{ name, kind, preset, meaning string }

// valueTables has a table for the values without a group, and one for each group.
func valueTables(values *yaml.Node, schema schemaNode) (string, error) {
	var general []valueRow
	var groups strings.Builder
	for key, value := range pairs(values) {
		of := schema.Properties[key.Value]
		if of.Properties == nil {
			row, err := newValueRow(key.Value, key, value, of, schema.Definitions)
			if err != nil {
				return "", err
			}
			general = append(general, row)
			continue
		}
		rows, err := groupRows(key.Value, value, of, schema.Definitions)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&groups, "\n## %s\n\n%s\n\n%s", key.Value, comment(key, value), table(rows))
	}
	return "\n## Values\n\n" + table(general) + groups.String(), nil
}

func groupRows(path string, values *yaml.Node, schema schemaNode, definitions map[string]schemaNode) ([]valueRow, error) {
	var rows []valueRow
	for key, value := range pairs(values) {
		name, of := path+"."+key.Value, schema.Properties[key.Value]
		if of.Properties != nil {
			inner, err := groupRows(name, value, of, definitions)
			if err != nil {
				return nil, err
			}
			rows = append(rows, inner...)
			continue
		}
		row, err := newValueRow(name, key, value, of, definitions)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// pairs are the keys of a mapping with their values, in the order of the file.
func pairs(mapping *yaml.Node) func(yield func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		for pair := range slices.Chunk(mapping.Content, 2) {
			if !yield(pair[0], pair[1]) {
				return
			}
		}
	}
}

func newValueRow(name string, key, value *yaml.Node, schema schemaNode, definitions map[string]schemaNode) (valueRow, error) {
	var preset any
	if err := value.Decode(&preset); err != nil {
		return valueRow{}, fmt.Errorf("reading %s: %w", name, err)
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(preset); err != nil {
		return valueRow{}, fmt.Errorf("writing %s: %w", name, err)
	}
	of := schema
	if definition, is := definitions[strings.TrimPrefix(schema.Ref, "#/definitions/")]; is {
		of = definition
	}
	kind := kindOf(of)
	meaning := comment(key, value)
	if of.Description != "" && !strings.Contains(meaning, of.Description) {
		meaning = strings.TrimPrefix(meaning+"; "+of.Description, "; ")
	}
	if kind == "" || meaning == "" {
		return valueRow{}, fmt.Errorf("%s needs a type in values.schema.json and a comment in values.yaml", name)
	}
	return valueRow{name, kind, strings.TrimSpace(text.String()), meaning}, nil
}

// kindOf is the type for readers; "" = the schema has none.
func kindOf(s schemaNode) string {
	var kinds []string
	for _, e := range s.Enum {
		kinds = append(kinds, fmt.Sprintf("`%v`", e))
	}
	for _, o := range s.OneOf {
		kinds = append(kinds, o.Type)
	}
	return cmp.Or(strings.Join(kinds, " or "), s.Type)
}

// comment is what values.yaml says about a value, in one line.
func comment(key, value *yaml.Node) string {
	var words []string
	for _, c := range []string{key.HeadComment, key.LineComment, value.HeadComment, value.LineComment} {
		if i := strings.LastIndex(c, "\n\n"); i >= 0 {
			c = c[i+2:] // what is before is about the file
		}
		for line := range strings.Lines(c) {
			words = append(words, strings.Fields(strings.TrimLeft(line, "# "))...)
		}
	}
	return strings.Join(words, " ")
}

// table is Markdown. Inside of code a vertical bar would end the cell, too.
func table(rows []valueRow) string {
	var b strings.Builder
	b.WriteString("| value | type | default | meaning |\n|---|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s |\n", r.name, r.kind, strings.ReplaceAll(r.preset, "|", `\|`), strings.ReplaceAll(r.meaning, "|", `\|`))
	}
	return b.String()
}
