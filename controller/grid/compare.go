package grid

import (
	"cmp"

	"gridproxy/controller/grid/expand"
)

func compareLive(a, b expand.Live) int { return cmp.Compare(a.Name, b.Name) }

func comparePods(a, b expand.Pod) int {
	return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}
