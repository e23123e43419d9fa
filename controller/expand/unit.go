package expand

import (
	"strings"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/topology"
)

// ValueOf is the value of the unit that an object was made for by the Grid; "" if it does not look like a child of it.
// The first word that fits the object's name counts: our annotation, the nodeSelector (SuperEdge's children have no
// annotation), the name itself. The key may have been edited since, so it is the child's own.
func ValueOf(g Grid, l Live) string {
	key := l.Annotations[v1.AnnotationKey]
	if key == "" {
		key = l.Labels[v1.LabelKey]
	}
	if key == topology.LabelValue(g.Key) {
		key = g.Key
	}
	rest, _ := strings.CutPrefix(l.Name, g.Name+"-")
	for _, value := range []string{l.Annotations[v1.AnnotationValue], l.NodeSelector[key], l.NodeSelector[g.Key], rest} {
		if value != "" && g.childName(value) == l.Name {
			return value
		}
	}
	return ""
}
