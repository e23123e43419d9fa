package names

import "strings"

// The two trees of the cluster domain.
const (
	serviceTree = "svc"
	podTree     = "pod"
)

// question is what a name asks for. A part that the name does not have is empty.
type question struct {
	tree, namespace, service string
	endpoint                 string // a name below that of a Service
	port, protocol           string // two names below it, without the underscores
}

// parse takes a name apart that is relative to the cluster domain, in lower case and without a
// dot at its end. It returns false if no such name can exist. Not every name asks for
// something: that of the tree and the domain has no records but exists, which is a question
// without a namespace.
func parse(name string) (q question, ok bool) {
	if strings.Contains(name, `\`) { // an escaped character is in no name of Kubernetes
		return q, false
	}
	var labels [5]string // of the right end
	count := 0
	for rest := name; rest != ""; count++ {
		if count == len(labels) {
			return q, false
		}
		dot := strings.LastIndexByte(rest, '.')
		labels[count], rest = rest[dot+1:], rest[:max(dot, 0)]
	}
	q.tree, q.namespace, q.service = labels[0], labels[1], labels[2]
	if count > 0 && q.tree != serviceTree && q.tree != podTree {
		return q, false
	}
	switch count {
	case 4:
		q.endpoint = labels[3]
	case 5:
		q.protocol, q.port = strings.TrimPrefix(labels[3], "_"), strings.TrimPrefix(labels[4], "_")
	}
	return q, true
}
