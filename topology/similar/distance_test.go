package similar

import "testing"

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
