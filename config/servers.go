package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// Servers is one "kind: Servers" document: the servers between which "headgate probe mesh"
// measures.
type Servers struct {
	File string
	Line int
	// Measure is the kind of measurement: one of Measurements.
	Measure string
	// Capacity is the known capacity of all paths; 0 means that it is measured.
	Capacity unit.Rate
	// Bytes and Time limit a measurement in each direction; 0 means the default of the
	// measurement.
	Bytes unit.Bytes
	Time  time.Duration
	// Servers has at least two entries, with unique names and addresses.
	Servers []Server
}

// Server is a host that runs "headgate probe serve".
type Server struct {
	Name    string
	Address probe.Address
}

// Measurements are the valid values of Servers.Measure; the first is the default.
var Measurements = []string{"tokenrate", "capacity", "available", "path"}

// maxServers is the maximum number of servers. Each pair is measured: 64 servers have 2,000
// pairs.
const maxServers = 64

func serversDocument(s *source, n *node) Servers {
	d := newDecoder(s)
	out := Servers{File: s.file, Line: n.line, Measure: Measurements[0]}
	d.fields(n, "", "a list of Servers", []field{
		{"kind", func(*node, string) {}},
		{"measure", one(d, &out.Measure, measurement)},
		{"capacity", one(d, &out.Capacity, nonZero("capacity", unit.ParseRate))},
		{"bytes", one(d, &out.Bytes, nonZero("size", unit.ParseBytes))},
		{"time", one(d, &out.Time, parseDuration)},
		{"servers", func(n *node, key string) {
			d.each(n, key, "a server", func(n *node, key string) {
				out.Servers = append(out.Servers, d.server(n, key))
			})
		}},
	})
	d.checkServers(n, out.Servers)
	return out
}

// server parses "{name: fra, address: fra.example.org}".
func (d *decoder) server(n *node, key string) (s Server) {
	d.fields(n, key, "a server", []field{
		{"name", one(d, &s.Name, serverName)},
		{"address", one(d, &s.Address, probe.ParseAddress)},
	})
	d.needs(n, key, "name", "the server has no %s: write for example %[1]s: fra")
	d.needs(n, key, "address", "the server has no %s: write for example %[1]s: fra.example.org")
	return s
}

// checkServers reports duplicate servers, and too few or too many servers.
func (d *decoder) checkServers(n *node, servers []Server) {
	const key = "servers"
	switch {
	case d.broken[key]:
		return
	case len(servers) < 2:
		d.invalid(n, key, "too few servers: list at least two")
	case len(servers) > maxServers:
		d.invalid(n, key, "%d servers are too many: the maximum is %d", len(servers), maxServers)
	}
	names, addresses := map[string]int{}, map[probe.Address]int{}
	for i, s := range servers {
		at := fmt.Sprintf("%s[%d]", key, i)
		if first, dup := names[s.Name]; dup && s.Name != "" {
			d.invalid(n, at+".name", "%q is already the name of servers[%d]: names must be unique", s.Name, first)
		} else {
			names[s.Name] = i
		}
		if first, dup := addresses[s.Address]; dup && s.Address.Host != "" {
			d.invalid(n, at+".address", "%s is already the address of servers[%d]: list each server once", s.Address, first)
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
	return "", fmt.Errorf("%q is not a measurement: write %s", s, strings.Join(Measurements, ", "))
}

// nonZero parses a quantity and rejects 0.
func nonZero[T ~uint64](what string, parse func(string) (T, error)) func(string) (T, error) {
	return func(s string) (T, error) {
		v, err := parse(s)
		if err == nil && v == 0 {
			err = fmt.Errorf("a %s of 0 measures nothing: write more, or remove the key", what)
		}
		return v, err
	}
}

func parseDuration(s string) (time.Duration, error) {
	v, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration: write for example 30s", s)
	}
	if v <= 0 {
		return 0, errors.New("a time of 0 measures nothing: write for example 30s, or remove the key")
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
