package dnsfeed

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gridproxy/topology/dnsview"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// hostile returns a Service of 16,000 endpoints, which share a list of ports. The first endpoint is
// on a node of its own.
func hostile(ports int, node string) *dnsview.Names {
	svc := headless("hostile")
	addMembers(svc, 16_000, 0, manyPorts(ports))
	svc.Endpoints[0].Node = node
	return svc
}

func manyPorts(n int) (all []dnsview.Port) {
	for i := range n {
		all = append(all, dnsview.Port{Name: fmt.Sprintf("port-%d", i), Protocol: "TCP", Number: int32(8000 + i)})
	}
	return all
}

// TestPortsAreReadOnce: endpoints that share a list of ports cost the same with any number of
// ports.
func TestPortsAreReadOnce(t *testing.T) {
	allocations := func(svc *dnsview.Names) float64 {
		return testing.AllocsPerRun(2, func() { _ = NewWriter(io.Discard).Update(Update{Services: []*dnsview.Names{svc}}) })
	}
	many, one := hostile(100, ""), hostile(1, "")
	if a, b := allocations(many), allocations(one); a > b*1.1 {
		t.Errorf("%.0f allocations with 100 ports, %.0f with one", a, b)
	}
	part := headless("part")
	addMembers(part, 6, 0, many.Endpoints[0].Ports, many.Endpoints[0].Ports[:7])
	checkRoundTrip(t, dnsview.View{Node: "bj-3"}, dnsview.View{Node: "bj-3", Services: []*dnsview.Names{part}})
}

func writtenService(t *testing.T, svc *dnsview.Names) []byte {
	return written(t, func(w *Writer) error { return w.Update(Update{Services: []*dnsview.Names{svc}}) })
}

type follower struct {
	Backlog
	known dnsview.View
	now   time.Time
	large map[string]int // updates of large Services, by name
}

// follow takes updates until none is left, or all that are left wait.
func (f *follower) follow(t rapid.TB, v dnsview.View, used time.Duration) (again time.Time) {
	t.Helper()
	for {
		u, again := f.Next(v, f.now)
		if u.Empty() {
			return again
		}
		others, large := u.split()
		switch {
		case len(large) > 1 || len(large) == 1 && !others.Empty():
			t.Fatalf("an update with %d large Services and %d others", len(large), len(others.Services))
		case len(large) == 0:
			f.known = known(f.known, u)
			f.current(t, v)
		default:
			f.current(t, v)
			f.known = known(f.known, u)
			f.large[large[0].Service.Name]++
		}
		f.Took(used, f.now)
	}
}

// current checks that all but large Services are those of a view.
func (f *follower) current(t rapid.TB, v dnsview.View) {
	t.Helper()
	u := Between(f.known, v)
	if u.Urgent() {
		t.Fatalf("%d Services are not current, %d are not removed", len(u.Services), len(u.Removed))
	}
}

func newFollower() *follower { return &follower{now: time.Unix(0, 0), large: map[string]int{}} }

// TestOthersAreCurrent: while two large Services change twice a second, the names of another one
// are current after each change. The large ones take 1/20 of the processor, in turn.
func TestOthersAreCurrent(t *testing.T) {
	const used = 100 * time.Millisecond
	f := newFollower()
	large, small := hostile(100, ""), headless("web")
	var v dnsview.View
	for range 200 {
		first, second, other := *large, *large, *small
		second.Service.Name = "second"
		v = dnsview.View{Services: []*dnsview.Names{&first, &second, &other}}
		f.follow(t, v, used)
		f.now = f.now.Add(500 * time.Millisecond)
	}
	if f.large["hostile"] != 26 || f.large["second"] != 25 {
		t.Errorf("in 100 s the large Services were sent %v times, want one in 2 s, and both at first", f.large)
	}
	for range 2 {
		f.now = f.follow(t, v, used)
	}
	f.follow(t, v, used)
	if !slices.Equal(f.known.Services, v.Services) {
		t.Error("the large Services are not current after their rest")
	}
}

// TestManyLargeServices: while 50 large Services of one tenant change all the time, every second
// turn is that of another tenant.
func TestManyLargeServices(t *testing.T) {
	f := newFollower()
	large := headless("large")
	addMembers(large, largePairs+1, 0, nil)
	names := func(namespace, name string) *dnsview.Names {
		svc := *large
		svc.Service = types.NamespacedName{Namespace: namespace, Name: name}
		return &svc
	}
	for range 40 {
		var v dnsview.View
		for i := range 50 {
			v.Services = append(v.Services, names("busy", fmt.Sprintf("service-%02d", i)))
		}
		v.Services = append(v.Services, names("calm", "victim"))
		f.now = f.follow(t, v, time.Second)
	}
	if sent := f.large["victim"]; sent < 20 {
		t.Errorf("the other tenant had %d of 40 turns", sent)
	}
}

// TestBacklog: after any history of views a reader has the last one. No update waits for a large
// Service, and each large Service has its turn.
func TestBacklog(t *testing.T) {
	large := headless("large")
	addMembers(large, largePairs+1, 0, nil)
	rapid.Check(t, func(t *rapid.T) {
		f := newFollower()
		var v dnsview.View
		for range rapid.IntRange(1, 8).Draw(t, "views") {
			v = anyBacklogView(t, v, large)
			f.now = f.now.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "seconds")) * time.Second)
			f.follow(t, v, 100*time.Millisecond)
		}
		for turns := 0; ; turns++ {
			again := f.follow(t, v, 100*time.Millisecond)
			if again.IsZero() {
				break
			}
			if f.now = again; turns > len(v.Services) {
				t.Fatal("a large Service is sent twice before another one")
			}
		}
		if !slices.Equal(f.known.Services, v.Services) {
			t.Fatalf("%d Services are known, want the last %d", len(f.known.Services), len(v.Services))
		}
	})
}

// anyBacklogView draws a view after another one: with other Services, and some of them large.
func anyBacklogView(t *rapid.T, before dnsview.View, large *dnsview.Names) (v dnsview.View) {
	for _, name := range anyNames(t, "services") {
		svc := headless(name)
		i, found := slices.BinarySearchFunc(before.Services, svc, dnsview.Compare)
		switch rapid.IntRange(0, 2).Draw(t, "change") {
		case 0:
			svc.Endpoints = large.Endpoints
		case 1:
			if found {
				svc = before.Services[i]
			}
		}
		v.Services = append(v.Services, svc)
	}
	return v
}

// TestLargeServicesFollow: the first update names large Services. One that is removed meanwhile is
// removed from what the reader keeps.
func TestLargeServicesFollow(t *testing.T) {
	var b Backlog
	now := time.Unix(0, 0)
	first, second, small := hostile(100, ""), hostile(100, ""), headless("web")
	second.Service.Name = "second"
	u, _ := b.Next(dnsview.View{Services: []*dnsview.Names{first, second, small}}, now)
	want := []types.NamespacedName{first.Service, second.Service}
	if !u.Whole || !slices.Equal(u.Services, []*dnsview.Names{small}) || !slices.Equal(u.Later, want) {
		t.Fatalf("the first update has %d Services, and names %v", len(u.Services), u.Later)
	}
	read, err := NewReader(bytes.NewReader(written(t, func(w *Writer) error { return w.Update(u) }))).Update()
	if err != nil || !slices.Equal(read.Later, want) {
		t.Errorf("read: %v, %v", read.Later, err)
	}
	v := dnsview.View{Services: []*dnsview.Names{first, small}}
	if u, _ = b.Next(v, now); !slices.Equal(u.Removed, want[1:]) || len(u.Services) > 0 {
		t.Errorf("the second update removes %v", u.Removed)
	}
	if u, _ = b.Next(v, now); !slices.Equal(u.Services, []*dnsview.Names{first}) {
		t.Errorf("the third update has %d Services", len(u.Services))
	}
}

// TestLongestUpdate: a Service with as many endpoints and ports as have names, all with the longest
// names that an API server takes, is a fifth of the largest update, in whatever order they come.
// The file of a reader, which has a list of ports once for each frame, is not larger.
func TestLongestUpdate(t *testing.T) {
	const endpoints = 50_000
	ports := manyPorts(dnsview.MaxPorts)
	for i := range ports {
		ports[i].Name = strings.Repeat("p", 63)
	}
	for _, lists := range []int{1, 2, 50, dnsview.MaxPorts} {
		var sets [][]dnsview.Port
		for set := range slices.Chunk(ports, len(ports)/lists) {
			sets = append(sets, set)
		}
		svc := headless("hostile")
		addMembers(svc, endpoints, 0, sets...)
		for i := range svc.Endpoints {
			svc.Endpoints[i].Ports = sets[i%len(sets)]
			svc.Endpoints[i].Node = strings.Repeat("n", 253)
		}
		text := writtenService(t, svc)
		if n := len(text); n > MaxUpdate/5 {
			t.Errorf("%d lists of ports: %d bytes", lists, n)
		}
		u, err := NewReader(bytes.NewReader(text)).Update()
		if err != nil || !bytes.Equal(writtenService(t, u.Services[0]), text) {
			t.Errorf("%d lists of ports: what was read is written otherwise, %v", lists, err)
		}
	}
}

// BenchmarkFeed writes an update about one changed endpoint of a hostile Service.
func BenchmarkFeed(b *testing.B) {
	views := []dnsview.View{{Services: []*dnsview.Names{hostile(100, "bj-1")}}, {Services: []*dnsview.Names{hostile(100, "bj-2")}}}
	w, n := NewWriter(io.Discard), 0
	began := processorTime(b)
	for b.Loop() {
		if err := w.Update(Between(views[n%2], views[(n+1)%2])); err != nil {
			b.Fatal(err)
		}
		n++
	}
	b.ReportMetric(float64(processorTime(b)-began)/float64(b.N), "cpu-ns/op")
}

func processorTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
