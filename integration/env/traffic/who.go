package traffic

import (
	"fmt"
	"strings"

	"gridproxy/integration/env/netns"
)

// OfLab reads who answered from what an echo server of package netns says.
func OfLab(text string) (string, error) {
	a, err := netns.ParseAnswer(text)
	return a.Pod, err
}

// OfManual reads who answered from what the echo server of SuperEdge's manual says: a line
// "pod name: NAME".
func OfManual(text string) (string, error) {
	for line := range strings.Lines(text) {
		if name, found := strings.CutPrefix(strings.TrimSpace(line), "pod name:"); found {
			return strings.TrimSpace(name), nil
		}
	}
	return "", fmt.Errorf("not an answer of the manual's echo server, without a pod name: %q", text)
}
