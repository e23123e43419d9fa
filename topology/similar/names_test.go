package similar

import (
	"fmt"
	"slices"
	"testing"
)

func TestNames(t *testing.T) {
	var far []string
	for i := range 2000 {
		far = append(far, fmt.Sprintf("key-%04d", i))
	}
	for _, test := range []struct {
		key        string
		keys, want []string
	}{
		{"locaton", []string{"location", "kubernetes.io/hostname", "locations"}, []string{"location", "locations"}},
		{"zone", []string{"rack"}, nil},
		{"z", []string{"a"}, nil}, // half of a name may differ
		{"key-0", []string{"key-4", "key-3", "key-2", "key-1"}, []string{"key-1", "key-2", "key-3"}},
		{"locaton", append(far, "location"), nil}, // no more than 1000 are compared
	} {
		if got := Names(test.key, test.keys); !slices.Equal(got, test.want) {
			t.Errorf("Names(%s) is %v, want %v", test.key, got, test.want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{{"", "abc", 3}, {"zone", "zone", 0}, {"zone", "zoen", 2}, {"zone", "zones", 1}, {"site", "zone", 3}} {
		if got := Distance(test.a, test.b); got != test.want {
			t.Errorf("from %q to %q: %d, want %d", test.a, test.b, got, test.want)
		}
	}
}
