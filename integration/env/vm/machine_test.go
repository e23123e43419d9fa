package main

import "testing"

func TestVirtualises(t *testing.T) {
	for cpuinfo, want := range map[string]bool{
		"processor\t: 0\nflags\t\t: fpu vmx sse\n": true,
		"flags\t\t: fpu svm\n":                     true,
		"flags\t\t: fpu pvm\n":                     false,
		"model name\t: vmx svm\nflags\t\t: fpu\n":  false,
		"": false,
	} {
		if got := virtualises(cpuinfo); got != want {
			t.Errorf("%q: got %v, want %v", cpuinfo, got, want)
		}
	}
}
