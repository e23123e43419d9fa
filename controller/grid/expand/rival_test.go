package expand

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestRivals: the text about who took which fields.
func TestRivals(t *testing.T) {
	const all = `{"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:replicas":{},"f:paused":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"echo\"}":{".":{},"f:image":{}}}}}}}`
	const image = `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"echo\"}":{"f:image":{}}}}}}}`
	for _, test := range []struct {
		name   string
		others []Owner
		ours   string
		want   string
	}{
		{"nothing was taken", []Owner{{"helm", image}}, all, ""},
		{"a field", []Owner{{"helm", `{"f:spec":{"f:replicas":{}}}`}},
			strings.Replace(all, `"f:replicas":{},`, "", 1), "helm took .spec.replicas"},
		{"a field of a list", []Owner{{"z", image}, {"b", `{"f:spec":{"f:paused":{}}}`}},
			`{"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"echo\"}":{".":{}}}}}}}`,
			`b took .spec.paused; z took .spec.template.spec.containers[name="echo"].image`},
		{"everything, removed", []Owner{{"other", `{"f:status":{}}`}}, "",
			"removed by an unknown client: .metadata.labels.a, .spec.paused, .spec.replicas, …"},
		{"unreadable", []Owner{{"helm", `{{`}}, all, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			check(t, "text", Rivals(test.others, test.ours, all), test.want)
		})
	}
}

// TestRivalsAreBounded, however many there are and whatever their names are.
func TestRivalsAreBounded(t *testing.T) {
	var others []Owner
	var fields []string
	for i := range 50 {
		field := fmt.Sprintf(`"f:%02d-%s":{}`, i, strings.Repeat("界", 30))
		fields = append(fields, field)
		others = append(others, Owner{fmt.Sprintf("m%02d\n%s", i, strings.Repeat("ü", 40)), "{" + field + "}"})
	}
	text := Rivals(others, "", "{"+strings.Join(fields, ",")+"}")
	if len(text) > rivalBytesMax || !utf8.ValidString(text) || strings.Contains(text, "\n") || !strings.HasPrefix(text, "m00") {
		t.Errorf("%d bytes: %q", len(text), text)
	}
	if n := strings.Count(Rivals(others, "", `{"f:x":{}}`), "took"); n > rivalsMax {
		t.Errorf("%d rivals", n)
	}
}
