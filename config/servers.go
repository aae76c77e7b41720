package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"headgate/probe"
	"headgate/unit"
)

// Servers is one "kind: Servers" document: what "headgate probe mesh" measures
// between.
type Servers struct {
	File string
	Line int
	// Measure is what is measured: one of Measurements.
	Measure string
	// Capacity is that of all paths, if it is known; 0 is to measure it.
	Capacity unit.Rate
	// Bytes and Time are spent at the most in each direction; 0 is what a measurement
	// takes by itself.
	Bytes unit.Bytes
	Time  time.Duration
	// Servers are two at least, with names and addresses of their own.
	Servers []Server
}

// Server is a host on which "headgate probe serve" runs.
type Server struct {
	Name    string
	Address probe.Address
}

// Measurements are what Servers.Measure may be; the first is what it is by itself.
var Measurements = []string{"tokenrate", "capacity", "available", "path"}

// Most servers: each pair is measured, 2,000 of them with 64.
const mostServers = 64

func serversDocument(s *source, n *node) Servers {
	d := newDecoder(s)
	out := Servers{File: s.file, Line: n.line, Measure: Measurements[0]}
	d.fields(n, "", "a list of Servers", []field{
		{"kind", func(*node, string) {}},
		{"measure", one(d, &out.Measure, measurement)},
		{"capacity", one(d, &out.Capacity, some("capacity", unit.ParseRate))},
		{"bytes", one(d, &out.Bytes, some("size", unit.ParseBytes))},
		{"time", one(d, &out.Time, limit)},
		{"servers", func(n *node, key string) {
			d.each(n, key, "a server", func(n *node, key string) {
				out.Servers = append(out.Servers, d.server(n, key))
			})
		}},
	})
	d.tell(n, out.Servers)
	return out
}

// server reads "{name: fra, address: fra.example.org}".
func (d *decoder) server(n *node, key string) (s Server) {
	d.fields(n, key, "a server", []field{
		{"name", one(d, &s.Name, serverName)},
		{"address", one(d, &s.Address, probe.ParseAddress)},
	})
	d.needs(n, key, "name", "the server has no %s: write for example %[1]s: fra")
	d.needs(n, key, "address", "the server has no %s: write for example %[1]s: fra.example.org")
	return s
}

// tell finds servers that are there twice, and too few or many.
func (d *decoder) tell(n *node, servers []Server) {
	const key = "servers"
	switch {
	case d.broken[key]:
		return
	case len(servers) < 2:
		d.wrong(n, key, "a path has two ends: list two servers or more")
	case len(servers) > mostServers:
		d.wrong(n, key, "%d servers are too many: the most is %d", len(servers), mostServers)
	}
	names, addresses := map[string]int{}, map[probe.Address]int{}
	for i, s := range servers {
		at := fmt.Sprintf("%s[%d]", key, i)
		if first, dup := names[s.Name]; dup && s.Name != "" {
			d.wrong(n, at+".name", "%q is the name of servers[%d], too: give each its own", s.Name, first)
		} else {
			names[s.Name] = i
		}
		if first, dup := addresses[s.Address]; dup && s.Address.Host != "" {
			d.wrong(n, at+".address", "%s is servers[%d] already: list each once", s.Address, first)
		} else {
			addresses[s.Address] = i
		}
	}
}

func measurement(s string) (string, error) {
	for _, m := range Measurements {
		if s == m {
			return s, nil
		}
	}
	return "", fmt.Errorf("%q is nothing to measure: write %s", s, strings.Join(Measurements, ", "))
}

// some reads a quantity that is not 0.
func some[T ~uint64](what string, parse func(string) (T, error)) func(string) (T, error) {
	return func(s string) (T, error) {
		v, err := parse(s)
		if err == nil && v == 0 {
			err = fmt.Errorf("a %s of 0 measures nothing: write more, or leave the key out", what)
		}
		return v, err
	}
}

func limit(s string) (time.Duration, error) {
	v, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a length of time: write for example 30s", s)
	}
	if v <= 0 {
		return 0, errors.New("no time measures nothing: write for example 30s, or leave the key out")
	}
	return v, nil
}

var serverNames = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

func serverName(s string) (string, error) {
	if !serverNames.MatchString(s) {
		return "", fmt.Errorf("%q is not a name: write up to 63 letters, digits, dots, hyphens and underscores", s)
	}
	return s, nil
}
