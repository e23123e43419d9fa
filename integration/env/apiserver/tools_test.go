package apiserver

import (
	"io"
	"strings"
	"testing"
)

// TestUnknownRelease: a release without a go.mod file is refused, with those that there are.
func TestUnknownRelease(t *testing.T) {
	t.Setenv(versionVariable, "v1.20.0")
	if _, err := Ensure(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), OlderVersion) || !strings.Contains(err.Error(), Version) {
		t.Errorf("%s=v1.20.0: %v", versionVariable, err)
	}
}

// TestReleaseIsStarted: the API server is of the release that the environment chooses.
func TestReleaseIsStarted(t *testing.T) {
	t.Setenv(versionVariable, OlderVersion)
	c := ForTest(t, Options{})
	version, err := ClientForTest(t, c.Admin()).Discovery().ServerVersion()
	if err != nil || version.GitVersion != OlderVersion {
		t.Errorf("an API server of %s says it is %v (%v)", OlderVersion, version, err)
	}
}
