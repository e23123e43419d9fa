package topology

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

func TestIntersects(t *testing.T) {
	for _, tc := range []struct {
		name string
		keys []string
		a, b labels.Set
		want bool
	}{
		{"same value", []string{"zone"}, labels.Set{"zone": "a"}, labels.Set{"zone": "a"}, true},
		{"other value", []string{"zone"}, labels.Set{"zone": "a"}, labels.Set{"zone": "b"}, false},
		{"one without", []string{"zone"}, labels.Set{"zone": "a"}, labels.Set{}, false},
		{"both without", []string{"zone"}, nil, nil, false},
		{"both empty is no unit", []string{"zone"}, labels.Set{"zone": ""}, labels.Set{"zone": ""}, false},
		{"any of two keys", []string{"foo", "bar"}, labels.Set{"foo": "1", "bar": "2"}, labels.Set{"foo": "9", "bar": "2"}, true},
		{"no keys", nil, labels.Set{"zone": "a"}, labels.Set{"zone": "a"}, false},
	} {
		if got := Intersects(tc.keys, tc.a, tc.b); got != tc.want {
			t.Errorf("%s: Intersects = %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestParseKeys(t *testing.T) {
	for _, tc := range []struct {
		keys, policy string // "-" = the annotation is absent
		want         []string
		wantPolicy   Policy
		wantErr      string // a part of it; "" = none
	}{
		{"-", "-", nil, PolicyAny, ""},
		{"[]", "-", nil, PolicyAny, ""},
		{"-", "bogus", nil, PolicyAny, ""},
		{`["zone"]`, "-", []string{"zone"}, PolicyAny, ""},
		{`["a.example/zone", "b"]`, "Any", []string{"a.example/zone", "b"}, PolicyAny, ""},
		{`["zone","*"]`, "Ordered", []string{"zone", "*"}, PolicyOrdered, ""},
		{`["*"]`, "Ordered", []string{"*"}, PolicyOrdered, ""},
		{``, "-", nil, "", "not a JSON list"},
		{`null`, "-", nil, "", "write []"},
		{`""`, "-", nil, "", "not a JSON list"},
		{`"zone"`, "-", nil, "", "not a JSON list"},
		{`["zone"`, "-", nil, "", "not a JSON list"},
		{`["zone"] x`, "-", nil, "", "not a JSON list"},
		{`[1]`, "-", nil, "", "not a JSON list"},
		{`[null]`, "-", nil, "", "not a label key"},
		{`[""]`, "-", nil, "", "not a label key"},
		{`["not a key"]`, "-", nil, "", "not a label key"},
		{`["site","site"]`, "-", []string{"site"}, PolicyAny, ""},
		{`["b","a","b"]`, "Ordered", []string{"b", "a"}, PolicyOrdered, ""},
		{`["zone","*","*"]`, "Ordered", []string{"zone", "*"}, PolicyOrdered, ""},
		{`["not a key","not a key"]`, "-", nil, "", "not a label key"},
		{`["*","zone","*"]`, "Ordered", nil, "", "before its last place"},
		{`["zone","*"]`, "-", nil, "", "needs superedge.io/topology-policy"},
		{`["*","zone"]`, "Ordered", nil, "", "before its last place"},
		{`["zone"]`, "ordered", nil, "", "not Any or Ordered"},
		{`["zone"]`, "", nil, "", "not Any or Ordered"},
	} {
		annotations := map[string]string{}
		if tc.keys != "-" {
			annotations[AnnotationKeys] = tc.keys
		}
		if tc.policy != "-" {
			annotations[AnnotationPolicy] = tc.policy
		}
		keys, policy, err := ParseKeys(annotations)
		if tc.wantErr != "" {
			if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("ParseKeys(%s, %s) error = %v, want one with %q", tc.keys, tc.policy, err, tc.wantErr)
			}
			continue
		}
		if err != nil || policy != tc.wantPolicy || !cmp.Equal(keys, tc.want) {
			t.Errorf("ParseKeys(%s, %s) = %v, %v, %v; want %v, %v", tc.keys, tc.policy, keys, policy, err, tc.want, tc.wantPolicy)
		}
	}
}

// FuzzParseKeys: whatever the annotation holds, it is an ordinary Service, or readable
// keys that round-trip through a unit comparison, or an error; an error never opens.
func FuzzParseKeys(f *testing.F) {
	for _, seed := range []string{``, `[]`, `null`, `["zone"]`, `["zone","*"]`, `[1]`, `{"a":1}`, `["zone"`} {
		f.Add(seed, "")
		f.Add(seed, "Ordered")
	}
	f.Fuzz(func(t *testing.T, text, policy string) {
		annotations := map[string]string{AnnotationKeys: text}
		if policy != "" {
			annotations[AnnotationPolicy] = policy
		}
		keys, _, err := ParseKeys(annotations)
		svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}
		if c := confine(svc, nil); err != nil && !c.ownOnly {
			t.Errorf("%q is malformed (%v), yet the Service is not closed to its own node", text, err)
		}
		if err == nil && len(keys) == 0 && strings.TrimSpace(strings.Trim(strings.TrimSpace(text), "[]")) != "" {
			t.Errorf("%q opens the Service", text)
		}
	})
}

func TestLastKeys(t *testing.T) {
	service := func(uid, keys string) *corev1.Service {
		svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: uid, UID: types.UID(uid), Annotations: map[string]string{}}}
		if keys != "-" {
			svc.Annotations[AnnotationKeys] = keys
		}
		return svc
	}
	got := Resolve(Snapshot{
		Services: []*corev1.Service{service("good", `["b"]`), service("bad", `["`), service("never", `["`), service("opened", `[]`), service("absent", "-")},
		LastKeys: map[types.UID][]string{"good": {"a"}, "bad": {"a"}, "opened": {"a"}, "absent": {"a"}, "gone": {"a"}},
	}, Config{}).LastKeys
	want := map[types.UID][]string{"good": {"b"}, "bad": {"a"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("LastKeys (-want +got):\n%s", diff)
	}
}
