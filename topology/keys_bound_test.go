package topology

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"gridproxy/topology/excerpt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func annotated(text, policy string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{AnnotationKeys: text, AnnotationPolicy: policy}}}
}

func keysJSON(t *testing.T, n int, format string) string {
	t.Helper()
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf(format, i)
	}
	text, err := json.Marshal(keys)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestAtMostSixteenKeys: each key costs a look at each endpoint, so their number is bounded; with
// more the last good keys stay, and without these only the node's own endpoints are used.
func TestAtMostSixteenKeys(t *testing.T) {
	longest := strings.Repeat("a.", 126) + "a/" + strings.Repeat("b", 61) + "%02d"
	for _, format := range []string{"key-%d", longest} {
		if c := confine(annotated(keysJSON(t, MaxKeys, format), "Any"), nil); c.malformed != "" || len(c.keys) != MaxKeys {
			t.Errorf("%d keys such as %s: %d are in force, malformed %q", MaxKeys, format, len(c.keys), c.malformed)
		}
	}
	for _, n := range []int{MaxKeys + 1, 5000} {
		text := keysJSON(t, n, "key-%d")
		if c := confine(annotated(text, "Any"), []string{"zone"}); c.malformed == "" || fmt.Sprint(c.keys) != "[zone]" || c.ownOnly {
			t.Errorf("%d keys, last good key zone: %d keys in force, malformed %q, own endpoints only %v", n, len(c.keys), c.malformed, c.ownOnly)
		}
		if c := confine(annotated(text, "Any"), nil); c.malformed == "" || len(c.keys) > 0 || !c.ownOnly {
			t.Errorf("%d keys, no last good keys: %d keys in force, malformed %q, own endpoints only %v", n, len(c.keys), c.malformed, c.ownOnly)
		}
	}
}

// TestMalformedTextsAreShort: what a tenant writes into an annotation does not decide the size
// or the lines of a message.
func TestMalformedTextsAreShort(t *testing.T) {
	huge := strings.Repeat("x\n\x1b[31m\u202e", 20_000)
	for name, svc := range map[string]*corev1.Service{
		"not JSON":           annotated(huge, "Any"),
		"a short text":       annotated("a\nb", "Any"),
		"no label keys":      annotated(keysJSON(t, MaxKeys, "no key \u202e %d"+strings.Repeat("x", 300)), "Any"),
		"too many":           annotated(keysJSON(t, 5000, "key-%d"), "Any"),
		"policy":             annotated(`["zone"]`, huge),
		"both":               annotated(`["no key"]`, "a\nb"),
		"a list of not text": annotated("["+strings.Repeat(" ", 1<<20)+"1]", "Any"),
	} {
		c := confine(svc, nil)
		if n := utf8.RuneCountInString(c.malformed); n == 0 || n > excerpt.MaxLineChars {
			t.Errorf("%s: the message has %d characters, want 1 to %d", name, n, excerpt.MaxLineChars)
		}
		if strings.ContainsFunc(c.malformed, func(r rune) bool { return !strconv.IsPrint(r) }) {
			t.Errorf("%s: not printable: %.100q", name, c.malformed)
		}
	}
}
