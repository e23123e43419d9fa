package ipvs

import "io"

// Parse reads /proc/net/ip_vs: Servers, Destinations and Connections. Servers of firewall
// marks are left out. A line that is not understood is an error that quotes it.
func Parse(r io.Reader) (Observed, error) { return Observed{}, nil }

// ParseConnections reads of /proc/net/ip_vs only how many connections, active and inactive,
// some destinations have.
func ParseConnections[V any](r io.Reader, of map[DestinationKey]V) (map[DestinationKey]int, error) {
	return nil, nil
}
