package excerpt

import (
	"os/exec"
	"strings"
	"testing"
)

// TestOutputIsLimited: of endless output only the beginning is kept, and the program can continue.
func TestOutputIsLimited(t *testing.T) {
	var output Output
	cmd := exec.Command("sh", "-c", "echo first; head -c 10000000 /dev/zero; echo last >&2")
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if text := output.String(); len(text) != MaxOutputBytes+len("...") || !strings.HasPrefix(text, "first\n") || !strings.HasSuffix(text, "...") {
		t.Errorf("%d bytes are kept: %.20q", len(text), text)
	}
	var short Output
	if n, err := short.Write([]byte("text")); n != 4 || err != nil || short.String() != "text" {
		t.Errorf("got %q, %d, %v", short.String(), n, err)
	}
}
