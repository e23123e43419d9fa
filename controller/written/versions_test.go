package written

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func object(uid types.UID, version string) metav1.Object {
	return &metav1.ObjectMeta{UID: uid, ResourceVersion: version}
}

// TestStale: an object is stale until the cache shows our last write, or anything newer.
func TestStale(t *testing.T) {
	for _, c := range []struct {
		what          string
		wrote, cached []string
		want          bool
	}{
		{"no write", nil, []string{"5"}, false},
		{"the cache is behind", []string{"10"}, []string{"9"}, true},
		{"it is behind two writes", []string{"6", "7"}, []string{"5"}, true},
		{"it comes between them", []string{"6", "7"}, []string{"5", "6"}, true},
		{"it has another's write before ours", []string{"12"}, []string{"10", "11"}, true},
		{"it has seen the write, and goes back", []string{"12"}, []string{"12", "10"}, false},
		{"it has seen another's later write", []string{"6"}, []string{"7"}, false},
		{"it has a version without order", []string{"12"}, []string{"x"}, false},
	} {
		var v Versions
		for i, version := range c.wrote {
			v.Wrote(object("1", version), time.Unix(int64(i), 0))
		}
		var at time.Time
		var stale bool
		for _, version := range c.cached {
			at, stale = v.Stale(object("1", version))
		}
		if stale != c.want || stale && at.Unix() != int64(len(c.wrote)-1) {
			t.Errorf("%s: stale %t since %s, want %t", c.what, stale, at, c.want)
		}
	}
}

// TestKeep: the objects that are gone are forgotten, and no others.
func TestKeep(t *testing.T) {
	var v Versions
	v.Wrote(object("1", "10"), time.Time{})
	v.Wrote(object("2", "10"), time.Time{})
	v.Keep(map[types.UID]bool{"1": true})
	_, first := v.Stale(object("1", "9"))
	_, second := v.Stale(object("2", "9"))
	if !first || second {
		t.Errorf("stale: %t, %t", first, second)
	}
}
