package agreement

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"
)

// askHealth asks every health-check node port of a family at every address of the node,
// over HTTP, in the calling thread's network namespace. A line says who was asked and what
// was answered: refused, or the code, the weight and the body.
func askHealth(c Cluster, ipv6 bool) ([]string, error) {
	var ports []uint16
	for _, svc := range c.Services {
		if svc.Spec.HealthCheckNodePort != 0 {
			ports = append(ports, uint16(svc.Spec.HealthCheckNodePort))
		}
	}
	var lines []string
	for _, port := range ports {
		for _, addr := range nodeAddrs(c, ipv6) {
			at := netip.AddrPortFrom(addr, port)
			answer, err := ask(at)
			if err != nil {
				return nil, fmt.Errorf("asking health-check node port %v: %w", at, err)
			}
			lines = append(lines, fmt.Sprintf("%v: %s", at, answer))
		}
	}
	return lines, nil
}

// ask speaks HTTP by hand: http.Client would open its socket on another thread and so in
// another namespace.
func ask(at netip.AddrPort) (string, error) {
	conn, err := net.DialTimeout("tcp", at.String(), 10*time.Second)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return "refused", nil
	}
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "GET /healthz HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", at); err != nil {
		return "", err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var body map[string]any
	if err := json.NewDecoder(response.Body).Decode(&body); err != nil {
		return "", fmt.Errorf("reading the body: %w", err)
	}
	var headers []string
	for _, name := range []string{"Content-Type", "X-Content-Type-Options", "X-Load-Balancing-Endpoint-Weight"} {
		headers = append(headers, name+"="+response.Header.Get(name))
	}
	return fmt.Sprintf("%d %s %v", response.StatusCode, strings.Join(headers, " "), body), nil
}
