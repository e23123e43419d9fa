package manifest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkRead reads a directory of 10,000 Services and their EndpointSlices, one file each,
// again: with nothing changed, and with one file changed.
func BenchmarkRead(b *testing.B) {
	dir := b.TempDir()
	old := time.Now().Add(-time.Hour)
	write := func(i, generation int) {
		text := fmt.Sprintf(`apiVersion: v1
kind: Service
metadata: {name: svc-%05[1]d, namespace: shop}
spec: {clusterIP: 10.96.%[2]d.%[3]d, ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: svc-%05[1]d, namespace: shop, labels: {kubernetes.io/service-name: svc-%05[1]d}}
addressType: IPv4
ports: [{port: 8080}]
endpoints: [{addresses: [10.%[4]d.%[2]d.%[3]d], nodeName: n1}]
`, i, i>>8, i&255, generation)
		name := filepath.Join(dir, fmt.Sprintf("%05d.yaml", i))
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
		if err := os.Chtimes(name, old, old.Add(time.Duration(generation)*time.Second)); err != nil {
			b.Fatal(err)
		}
	}
	for i := range 10000 {
		write(i, 0)
	}
	r := NewReader([]string{dir}, nil)
	read := func() {
		if _, _, err := r.Read(); err != nil {
			b.Fatal(err)
		}
	}
	read()
	b.Run("nothing", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			read()
		}
	})
	b.Run("one-file", func(b *testing.B) {
		b.ReportAllocs()
		for n := 1; b.Loop(); n++ {
			b.StopTimer()
			write(17, n%200)
			b.StartTimer()
			read()
		}
	})
}
