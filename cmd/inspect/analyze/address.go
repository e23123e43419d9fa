package analyze

import (
	"gridproxy/cmd/inspect/explain"
	"gridproxy/rules"

	"k8s.io/apimachinery/pkg/types"
)

// addresses finds the addresses that a Service names and does not get.
func (a *analysis) addresses(conflicts []rules.AddressConflict) {
	byService := map[types.NamespacedName][]rules.AddressConflict{}
	for _, c := range conflicts {
		byService[c.Service.NamespacedName] = append(byService[c.Service.NamespacedName], c)
	}
	for _, svc := range a.services {
		for _, c := range byService[explain.NameOf(svc)] {
			code, remedy := addressTaken, "give one of the two Services another address or port"
			if c.Reserved != rules.NotReserved {
				code, remedy = serverAddress, "give the Service another address or port"
			}
			a.add(code, svc, func() (string, string) { return c.String(), remedy })
		}
	}
}
