package netns

import "testing"

// ForTest builds a lab that ends with the test.
func ForTest(t testing.TB, layout Layout) *Lab {
	t.Helper()
	l, err := New(layout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}
