package dnsfeed

import (
	"fmt"
	"io"
	"slices"

	"gridproxy/topology/dnsview"
)

// Writer writes one side of a feed. Its first error is that of all later calls. One goroutine may
// use it.
type Writer struct {
	codec codec
	to    io.Writer
	err   error
}

// NewWriter makes a Writer that has written nothing yet. Give it a buffer: a small update is
// several writes, and Flush is the caller's.
func NewWriter(to io.Writer) *Writer {
	c, err := newCodec()
	return &Writer{codec: c, to: to, err: err}
}

// Hello greets with the version of this package instead of h.Version.
func (w *Writer) Hello(h Hello) error {
	h.Version = Version
	w.write(kindHello, h)
	return w.err
}

// Report writes how the DNS server is.
func (w *Writer) Report(r Report) error {
	w.write(kindReport, r)
	return w.err
}

// Update writes all parts of an update, and commits it.
func (w *Writer) Update(u Update) error {
	for _, svc := range u.Services {
		w.service(svc)
	}
	for part := range slices.Chunk(u.Removed, removedMax) {
		w.write(kindRemoved, wireRemoved{encodeNames(part)})
	}
	if u.NewNamespaces {
		for part := range slices.Chunk(u.Namespaces, namespacesMax) {
			w.write(kindNamespaces, wireNamespaces{Names: part})
		}
	}
	later := encodeNames(u.Later[:min(len(u.Later), laterMax)])
	w.write(kindCommit, wireCommit{Generation: u.Generation, Whole: u.Whole, NewNamespaces: u.NewNamespaces, Later: later})
	return w.err
}

// service writes a Service in as many parts as it takes. What a tenant writes into one Service
// never ends the feed of all.
func (w *Writer) service(svc *dnsview.Names) {
	p := w.begin(svc)
	for _, e := range svc.Endpoints {
		p.room(len(e.Hostname)+len(e.Node)+perItem, e.Ports)
		p.endpoint(e)
	}
	for _, a := range svc.Aliases {
		p.room(len(a.Alias)+len(a.Hostname)+perItem, nil)
		p.out.Aliases = append(p.out.Aliases, wireAlias(a))
	}
	w.write(kindService, p.out)
}

// parts are the frames of one Service.
type parts struct {
	w    *Writer
	out  wireService      // the frame to write next
	size int              // of it, estimated
	sets map[portList]int // indexes in PortSets
}

func (w *Writer) begin(svc *dnsview.Names) *parts {
	return &parts{w: w, sets: map[portList]int{}, out: wireService{
		Name: wireName(svc.Service), Kind: string(svc.Kind), ClusterIPs: svc.ClusterIPs, ExternalName: svc.ExternalName, Ports: newWirePorts(svc.Ports),
	}, size: sizeOf(svc.Ports)}
}

// room makes room for something of n bytes and its ports. If the frame would be too large, it
// is written, and the next one begins, without ports.
func (p *parts) room(n int, ports []dnsview.Port) {
	if p.size+n+p.costOf(ports) > partMax && len(p.out.Endpoints)+len(p.out.Aliases) > 0 {
		p.out.More = true
		p.w.write(kindService, p.out)
		p.out, p.size, p.sets = wireService{Name: p.out.Name}, 0, map[portList]int{}
	}
	p.size += n + p.costOf(ports)
}

// costOf returns what ports add to the size of the frame: 0 if it has them already.
func (p *parts) costOf(ports []dnsview.Port) int {
	if _, has := p.sets[newPortList(ports)]; has {
		return 0
	}
	return sizeOf(ports)
}

func (p *parts) endpoint(e dnsview.Endpoint) {
	list := newPortList(e.Ports)
	at, has := p.sets[list]
	if !has {
		at = len(p.out.PortSets)
		p.sets[list] = at
		p.out.PortSets = append(p.out.PortSets, newWirePorts(e.Ports))
	}
	p.out.Endpoints = append(p.out.Endpoints, wireEndpoint{Hostname: e.Hostname, Addr: e.Addr, Node: e.Node, Ports: at})
}

// portList identifies a list of ports by its pointer. A list never changes, and topology makes
// equal lists of a Service one. Those of a Service that was read have another pointer in each
// frame, which ends no frame earlier: it ends where the next one repeats its lists anyway.
type portList struct {
	first *dnsview.Port
	count int
}

func newPortList(ports []dnsview.Port) portList {
	if len(ports) == 0 {
		return portList{}
	}
	return portList{&ports[0], len(ports)}
}

func sizeOf(ports []dnsview.Port) (n int) {
	for _, p := range ports[:min(len(ports), portsMax)] {
		n += len(p.Name) + perItem
	}
	return n
}

func (w *Writer) write(k kind, content any) {
	if w.err != nil {
		return
	}
	frame, err := w.codec.frame(k, content)
	if err == nil {
		_, err = w.to.Write(frame)
	}
	if err != nil {
		w.err = fmt.Errorf("writing the feed: %w", err)
	}
}
