package refusal

import (
	"errors"
	"strings"
	"testing"
)

func TestRestoreErrorNamesTheLine(t *testing.T) {
	input := []byte("*nat\n-D A -j ACCEPT\nCOMMIT\n")
	for _, tc := range []struct {
		output string
		line   int
		text   string
	}{
		{"iptables-nft-restore: line 2 failed: Bad rule\n", 2, "-D A -j ACCEPT"},
		{"iptables-restore v1.8.9 (nf_tables): \nline 2: RULE_APPEND failed (No such file or directory)", 2, "-D A -j ACCEPT"},
		{"Error occurred at line: 3\n", 3, "COMMIT"},
		{"line 99 failed", 99, ""},
		{"line 0 failed", 0, "*nat"},
		{"killed", 0, ""},
	} {
		cause := errors.New("exit status 1")
		err := NewError("iptables-restore", input, tc.output, cause)
		if err.Line != tc.line || err.Text != tc.text || !errors.Is(err, cause) {
			t.Errorf("%q: line %d %q, want %d %q", tc.output, err.Line, err.Text, tc.line, tc.text)
		}
		if tc.text != "" && !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%q does not say %q", err.Error(), tc.text)
		}
	}
}
