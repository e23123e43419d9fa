package need

import "testing"

// skips is a test that only notes how it was ended.
type skips struct {
	testing.TB
	skipped, failed bool
}

func (s *skips) Helper()      {}
func (s *skips) Skip(...any)  { s.skipped = true }
func (s *skips) Fatal(...any) { s.failed = true }

// TestThat: what is missing skips a test, and with REQUIRE=all it fails it.
func TestThat(t *testing.T) {
	for _, c := range []struct {
		require         string
		ok              bool
		skipped, failed bool
	}{
		{require: "", ok: true}, {require: "all", ok: true},
		{require: "", skipped: true}, {require: "all", failed: true},
		// A list names suites. The command that runs them says all to those that it names.
		{require: "streams", skipped: true},
	} {
		t.Setenv("REQUIRE", c.require)
		s := &skips{TB: t}
		That(s, c.ok, "a tool is not installed")
		if s.skipped != c.skipped || s.failed != c.failed {
			t.Errorf("REQUIRE=%q, ok %t: skipped %t, failed %t", c.require, c.ok, s.skipped, s.failed)
		}
	}
}
