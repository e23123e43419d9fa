package iptables

import (
	"fmt"
	"slices"
	"testing"

	"gridproxy/rules/netfilter"
)

// BenchmarkSync measures syncs among 5,000 Services of two endpoints in a real kernel.
func BenchmarkSync(b *testing.B) {
	const n = 5000
	for _, v := range []netfilter.Variant{netfilter.VariantNFT, netfilter.VariantLegacy} {
		b.Run(string(v), func(b *testing.B) {
			private(b)
			ns := here(b)
			backend, _ := newBackend(b, v, netfilter.IPv4)
			list := services(n, 2)
			b.Run("cold", func(b *testing.B) {
				enter(b, ns)
				b.StopTimer()
				for range b.N {
					if err := backend.Cleanup(b.Context()); err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
					mustSync(b, backend, ruleset(list), true)
					b.StopTimer()
				}
			})
			generation := 0
			step := func(name string, do func(*testing.B)) {
				b.Run(name, func(b *testing.B) {
					enter(b, ns)
					for range b.N {
						do(b)
					}
				})
			}
			step("endpoint", func(b *testing.B) {
				generation = 1 - generation
				list = slices.Clone(list)
				list[17] = service(17, 2, generation)
				mustSync(b, backend, ruleset(list), false)
			})
			step("add+remove", func(b *testing.B) {
				mustSync(b, backend, ruleset(append(slices.Clone(list), service(n, 2, 0))), false)
				mustSync(b, backend, ruleset(list), false)
			})
			step("add", func(b *testing.B) {
				list = append(slices.Clone(list), service(len(list), 2, 0))
				mustSync(b, backend, ruleset(list), false)
			})
			step("nothing", func(b *testing.B) {
				mustSync(b, backend, ruleset(list), false)
			})
			step("verify-at-rest", func(b *testing.B) {
				mustSync(b, backend, ruleset(list), true)
			})
			step("verify-read", func(b *testing.B) {
				run(b, fmt.Sprintf("iptables-%s -t nat -N X; iptables-%s -t nat -X X", v, v)) // another process writes
				if c := mustSync(b, backend, ruleset(list), true); !c.Verified || c.Chains != 0 {
					b.Fatal(c)
				}
			})
		})
	}
}
