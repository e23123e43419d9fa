package topology

import "strings"

// MalformedEffect returns a text that says what holds for a Service whose annotations cannot be
// read, for logs, Events and explain. keys are those in force; none = the Service never had
// readable ones here.
func MalformedEffect(keys []string) string {
	if len(keys) == 0 {
		return "until it is corrected, each node uses only its own endpoints"
	}
	return "until it is corrected, the last valid keys stay in force: " + strings.Join(keys, ", ")
}
