package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gridproxy/integration/env/netns"
)

// dnsLoad is what one run of dnsperf said.
type dnsLoad struct {
	perSecond float64
	size      float64 // of an answer, in bytes
	p99       float64 // latency in seconds; 0 if it was not asked for
	busy      float64 // processor time of the server for a query, in seconds
}

// dnsLoader runs dnsperf in the namespace of the servers.
type dnsLoader struct {
	node           *netns.Node
	seconds        int
	known, missing string // files of questions
}

// How dnsperf asks: so many clients, each with a socket of its own, and so many queries under way.
const (
	dnsClients = 20
	dnsPending = 100
)

// lostShare is how many queries may remain without answer; more make a load void. dnsAttempts is
// how often it is tried.
const (
	lostShare   = 0.001
	dnsAttempts = 5
)

// lostError says that a load is void.
type lostError struct{ lost, answered float64 }

func (e lostError) Error() string {
	return fmt.Sprintf("%.0f queries remained without answer, and %.0f had one", e.lost, e.answered)
}

// takeTurns has each server answer the same loads, and looks at what it holds then. The cache is
// filled before each.
func (l dnsLoader) takeTurns(ctx context.Context, turns []*dnsServer, r *dnsResult) error {
	for _, server := range turns {
		duration := fmt.Sprintf("-l%d", l.seconds)
		if server.name == dnsOfCache {
			if err := l.fill(ctx, server); err != nil {
				return err
			}
		}
		known, err := l.run(ctx, server, l.known, "NOERROR", duration)
		if err != nil {
			return err
		}
		r.known[server.name] = append(r.known[server.name], known)
		said := fmt.Sprintf("%s: %.0f queries a second", server.name, known.perSecond)
		if server.name != dnsOfCache {
			missing, err := l.run(ctx, server, l.missing, "NXDOMAIN", duration)
			if err != nil {
				return err
			}
			steady, err := l.run(ctx, server, l.known, "NOERROR", duration, "-v", "-Q", strconv.Itoa(r.rate))
			if err != nil {
				return err
			}
			r.missing[server.name] = append(r.missing[server.name], missing)
			r.steady[server.name] = append(r.steady[server.name], steady)
			said += fmt.Sprintf(", %.0f of missing names, p99 %.2f ms", missing.perSecond, steady.p99*1000)
		}
		held, err := memoryOf(server.PID())
		if err != nil {
			return err
		}
		r.memory[server.name] = append(r.memory[server.name], float64(held.resident))
		say("  %s, memory %d MiB", said, held.resident>>20)
	}
	return nil
}

// fill asks each question once. Queries that are lost meanwhile are of no interest.
func (l dnsLoader) fill(ctx context.Context, server *dnsServer) error {
	_, err := l.dnsperf(ctx, server, l.known, "-n1")
	return err
}

// run has dnsperf ask a server. Every answer must have the code that is wanted. A load that a busy
// machine interrupted is begun again.
func (l dnsLoader) run(ctx context.Context, server *dnsServer, questions, code string, flags ...string) (load dnsLoad, err error) {
	for range dnsAttempts {
		if load, err = l.runOnce(ctx, server, questions, code, flags); !errors.As(err, new(lostError)) {
			return load, err
		}
		say("  again: %v", err)
	}
	return load, err
}

func (l dnsLoader) runOnce(ctx context.Context, server *dnsServer, questions, code string, flags []string) (dnsLoad, error) {
	before, err := processorTimeOf(server.PID())
	if err != nil {
		return dnsLoad{}, err
	}
	out, err := l.dnsperf(ctx, server, questions, flags...)
	if err != nil {
		return dnsLoad{}, err
	}
	after, err := processorTimeOf(server.PID())
	if err != nil {
		return dnsLoad{}, err
	}
	read, count, err := readDNSPerf(out, code)
	if err != nil {
		return dnsLoad{}, fmt.Errorf("%s under load: %w", server.name, err)
	}
	read.busy = (after.own - before.own).Seconds() / count
	return read, nil
}

func (l dnsLoader) dnsperf(ctx context.Context, server *dnsServer, questions string, flags ...string) ([]byte, error) {
	args := []string{"-s", server.addr, "-d", questions, "-c", strconv.Itoa(dnsClients), "-q", strconv.Itoa(dnsPending), "-t2"}
	return l.node.Run(ctx, nil, "dnsperf", slices.Concat(args, flags)...)
}

var (
	dnsAnswered = regexp.MustCompile(`(?m)^  Queries completed: +([0-9]+) `)
	dnsSent     = regexp.MustCompile(`(?m)^  Queries sent: +([0-9]+)$`)
	dnsLost     = regexp.MustCompile(`(?m)^  Queries lost: +([0-9]+) `)
	dnsCodes    = regexp.MustCompile(`(?m)^  Response codes: +(\S+) ([0-9]+) `)
	dnsSize     = regexp.MustCompile(`(?m)^  Average packet size: .*response ([0-9]+)$`)
	dnsRate     = regexp.MustCompile(`(?m)^  Queries per second: +([0-9.]+)$`)
)

// readDNSPerf reads what dnsperf prints, with a line for each query if -v was among its flags. It
// returns the number of answers too.
func readDNSPerf(out []byte, code string) (load dnsLoad, answered float64, err error) {
	number := func(pattern *regexp.Regexp, group int) float64 {
		n, wrong := numberIn(out, pattern, group)
		err = errors.Join(err, wrong)
		return n
	}
	answered, lost, coded := number(dnsAnswered, 1), number(dnsLost, 1), number(dnsCodes, 2)
	load = dnsLoad{perSecond: number(dnsRate, 1), size: number(dnsSize, 1)}
	if err != nil {
		return load, answered, err
	}
	if lost > lostShare*answered {
		return load, answered, lostError{lost, answered}
	}
	if found := string(dnsCodes.FindSubmatch(out)[1]); found != code || coded != answered {
		return load, answered, fmt.Errorf("%.0f of %.0f answers are %s, want all to be %s", coded, answered, found, code)
	}
	load.p99, err = p99Of(out)
	return load, answered, err
}

func numberIn(out []byte, pattern *regexp.Regexp, group int) (float64, error) {
	match := pattern.FindSubmatch(out)
	if match == nil {
		return 0, fmt.Errorf("dnsperf printed nothing like %s", pattern)
	}
	return strconv.ParseFloat(string(match[group]), 64)
}

// p99Of reads the lines of queries, such as "> NOERROR name A 0.000123".
func p99Of(out []byte) (float64, error) {
	var all []float64
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) != 5 || fields[0] != ">" {
			continue
		}
		seconds, err := strconv.ParseFloat(fields[4], 64)
		if err != nil {
			return 0, fmt.Errorf("reading the latency in %q: %w", lines.Text(), err)
		}
		all = append(all, seconds)
	}
	return percentile(all, 99), nil
}
