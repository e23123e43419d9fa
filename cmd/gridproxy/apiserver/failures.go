package apiserver

import (
	"net/http"
	"slices"
)

// answer is a server's answer to one read. No answer in time counts as 504, as from a proxy.
type answer struct {
	path   string
	status int
}

// good reports whether the server works. Refusals such as 403, 404 and 410 are good answers. A
// server that asks to retry later (429) is neither good nor failing.
func (a answer) good() bool {
	return a.status < http.StatusInternalServerError && a.status != http.StatusUnauthorized && a.status != http.StatusTooManyRequests
}

// failures are a server's failures since its last good answer. A timeout counts once for each path:
// a single list may be too large for any server, but a server that can read nothing times out for
// all.
type failures []answer

// and returns the failures after one more answer: nil if that is good. A status 429, and
// another timeout of the same path, add none.
func (f failures) and(a answer) failures {
	switch {
	case a.good():
		return nil
	case a.status == http.StatusTooManyRequests, a.status == http.StatusGatewayTimeout && slices.Contains(f, a):
		return f
	}
	return append(slices.Clip(f), a)
}

func (f failures) condemn() bool { return len(f) >= failuresMax }
