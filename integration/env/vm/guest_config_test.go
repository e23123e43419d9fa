package main

import "testing"

func TestReadLine(t *testing.T) {
	c := guestConfig{Mark: "m"}
	for _, test := range []struct {
		line, output string
		code         int
		ended        bool
	}{
		{"ok\n", "ok\n", 0, false},
		{c.exitLine(0), "", 0, true},
		{"half a line" + c.exitLine(2), "half a line", 2, true},
		{guestConfig{Mark: "another"}.exitLine(0), guestConfig{Mark: "another"}.exitLine(0), 0, false},
		{c.prefix() + "soon\n", c.prefix() + "soon\n", 0, false},
		{"\x16=== RUN TestX\n", "\x16=== RUN TestX\n", 0, false},
	} {
		output, code, ended := c.ReadLine(test.line)
		if output != test.output || code != test.code || ended != test.ended {
			t.Errorf("%q: got %q, %d, %v", test.line, output, code, ended)
		}
	}
}
