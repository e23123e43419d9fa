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
