package tree

import (
	"archive/tar"
	"fmt"
	"path"
	"strings"
)

// maxLinks is how many links the kernel follows.
const maxLinks = 40

// Resolve returns what a path, without a leading slash, leads to over links, also those of
// folders on the way. It returns an error if that is missing, or after maxLinks links.
func (t Tree) Resolve(name string) (Entry, error) {
	todo, done := strings.Split(path.Clean(name), "/"), "."
	for links := 0; len(todo) > 0; {
		next := path.Join(done, todo[0])
		e, found := t[next]
		switch {
		case todo[0] == "..":
			done, todo = path.Dir(done), todo[1:]
		case !found:
			return Entry{}, fmt.Errorf("/%s is missing", next)
		case e.Kind == tar.TypeLink:
			return t.Resolve(e.Target)
		case e.Kind != tar.TypeSymlink:
			done, todo = next, todo[1:]
		default:
			if links++; links > maxLinks {
				return Entry{}, fmt.Errorf("/%s: too many links", name)
			}
			if path.IsAbs(e.Target) {
				done = "."
			}
			todo = append(strings.Split(strings.TrimPrefix(path.Clean(e.Target), "/"), "/"), todo[1:]...)
		}
	}
	return t[done], nil
}
