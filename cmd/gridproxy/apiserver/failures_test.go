package apiserver

import (
	"fmt"
	"strings"
	"testing"
)

func TestWhatCondemnsAServer(t *testing.T) {
	for _, c := range []struct {
		answers string // STATUS, or STATUS/PATH where the path matters
		want    bool
	}{
		{"500", false},
		{"503 503", false},
		{"503 503 503", true},
		{"500 502 401", true},
		{"401 401 401", true},
		{"501 599 505", true},
		{"503 503 200 503 503", false},
		{"503 503 200 503 503 503", true},
		{"503 503 403 503 503", false},
		{"503 503 404 503", false},
		{"503 503 410 503", false},
		{"503 503 302 503", false},
		{"403 403 403 403", false},
		{"429 429 429 429", false},
		{"503 429 503 429 429", false},
		{"503 429 503 429 503", true}, // 429 neither counts nor resets
		{"504 504 504 504", false},    // one list that is too large
		{"504/a 504/b 504/a 504/b 504/b", false},
		{"504/a 504/b 504/c", true},
		{"504/a 504/b 200/c 504/c", false},
		{"504/a 504/a 500/a", false},
		{"504/a 500/a 500/a", true},
	} {
		var f failures
		for text := range strings.FieldsSeq(c.answers) {
			var a answer
			_, _ = fmt.Sscanf(text, "%d%s", &a.status, &a.path) // most have no path
			f = f.and(a)
		}
		if got := f.condemn(); got != c.want {
			t.Errorf("%s: condemned: %v, want %v", c.answers, got, c.want)
		}
	}
}
