package need

import "testing"

func TestRequired(t *testing.T) {
	for list, want := range map[string]bool{
		"": false, "vm": true, "vm,cluster": true, "cluster, vm": true, "cluster vm": true, "cluster": false, "vms": false,
	} {
		t.Setenv("INTEGRATION_REQUIRE", list)
		if got := Required("vm"); got != want {
			t.Errorf("INTEGRATION_REQUIRE=%q: Required(vm) = %t, want %t", list, got, want)
		}
	}
}

// TestAsked: what costs much runs only where its kind is named, whatever else is required.
func TestAsked(t *testing.T) {
	t.Setenv("GRIDPROXY_REQUIRE", "all")
	for list, want := range map[string]bool{"": true, "vm,cluster": true, "image": false, "vm,image": false} {
		t.Setenv("INTEGRATION_REQUIRE", list)
		var skipped bool
		t.Run("asked", func(t *testing.T) {
			defer func() { skipped = t.Skipped() }()
			Asked(t, "image", "costs much", "make test-image")
		})
		if skipped != want {
			t.Errorf("INTEGRATION_REQUIRE=%q: skipped %t, want %t", list, skipped, want)
		}
	}
}
