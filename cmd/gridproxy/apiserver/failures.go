package apiserver

import (
	"net/http"
	"slices"
)

// enough failures in a row make a server one to leave. One alone is what a server that is being
// restarted, or has just lost its etcd, may answer.
const enough = 3

// answer is what a server gave to one read. None in time is 504, as if a proxy had said so.
type answer struct {
	path   string
	status int
}

// good answers come from a server that serves, be it that it refuses: 403, 404, 410. One that asks
// to be asked later (429) is neither good nor a failure.
func (a answer) good() bool {
	return a.status < http.StatusInternalServerError && a.status != http.StatusUnauthorized && a.status != http.StatusTooManyRequests
}

// failures are a server's since its last good answer. A timeout counts once for each path: one
// list may be too much for any server, but one that can read nothing times out for all of them.
type failures []answer

// and is f with one more answer.
func (f failures) and(a answer) failures {
	switch {
	case a.good():
		return nil
	case a.status == http.StatusTooManyRequests, a.status == http.StatusGatewayTimeout && slices.Contains(f, a):
		return f
	}
	return append(slices.Clip(f), a)
}

// condemn says whether they are too many.
func (f failures) condemn() bool { return len(f) >= enough }
