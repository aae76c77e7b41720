package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/relay"
)

// Relay is one "kind: Relay" document: a relay agent.
type Relay struct {
	relay.Policy
	File string
	Line int
	// Notes are remarks about the document.
	Notes []Note

	places map[string]position // of each key
}

func relayDocument(s *source, n *node) Relay {
	d := newDecoder(s)
	out := Relay{File: s.file, Line: n.line, places: d.places}
	encrypt := true
	d.fields(n, "", "a relay agent", []field{
		{"kind", func(*node, string) {}},
		{"name", one(d, &out.Name, serverName)},
		{"key", one(d, &out.KeyFile, absoluteFile)},
		{"tls", func(n *node, key string) {
			d.fields(n, key, "certificates", []field{
				{"cert", one(d, &out.TLS.Certificate, absoluteFile)},
				{"key", one(d, &out.TLS.Key, absoluteFile)},
				{"authority", one(d, &out.TLS.Authority, absoluteFile)},
			})
			for _, name := range []string{"cert", "key", "authority"} {
				d.needs(n, key, name, "%s is missing: write the PEM file, for example %[1]s: /etc/headgate/"+name+".pem")
			}
		}},
		{"encrypt", one(d, &encrypt, boolean)},
		{"accept", func(n *node, key string) {
			var listen []string
			d.fields(n, key, "how streams are accepted", []field{
				{"listen", oneOrMore(d, &listen, func(s string) ([]string, error) {
					s, err := listenAddress(s)
					return []string{s}, err
				})},
				{"destinations", oneOrMore(d, &out.Accept.Destinations, prefix)},
				{"keep_source", one(d, &out.Accept.KeepSource, boolean)},
			})
			if len(listen) > 0 {
				out.Accept.Listen, out.Accept.More = listen[0], listen[1:]
			}
			d.needs(n, key, "listen", "%s is missing: write for example %[1]s: 0.0.0.0:8424")
			d.needs(n, key, "destinations", "%s is missing: list the prefixes to which the exit may connect")
		}},
		{"exits", func(n *node, key string) {
			d.each(n, key, "an exit", func(n *node, key string) { out.Exits = append(out.Exits, d.exit(n, key)) })
		}},
		{"take", func(n *node, key string) {
			d.each(n, key, "a rule", func(n *node, key string) {
				var r relay.Rule
				d.fields(n, key, "a rule", []field{
					{"src", oneOrMore(d, &r.Src, prefix)},
					{"dst", oneOrMore(d, &r.Dst, prefix)},
					{"dport", oneOrMore(d, &r.Ports, relayPorts)},
					{"cgroup", one(d, &r.Cgroup, relayCgroup)},
					{"min_rtt", one(d, &r.MinRTT, roundTripTime)},
				})
				out.Take = append(out.Take, r)
			})
		}},
		{"forward", func(n *node, key string) {
			d.each(n, key, "a listener", func(n *node, key string) {
				var f relay.Forward
				d.fields(n, key, "a listener", []field{
					{"listen", one(d, &f.Listen, listenAddress)},
					{"to", one(d, &f.To, addressAndPort)},
				})
				d.needs(n, key, "listen", "%s is missing: write for example %[1]s: 127.0.0.1:8080")
				d.needs(n, key, "to", "%s is missing: write for example %[1]s: 10.0.0.2:80")
				out.Forwards = append(out.Forwards, f)
			})
		}},
		{"network", one(d, &out.Network, serverName)},
		{"socks", d.proxy(&out.Socks, &out.Notes)},
		{"http_proxy", d.proxy(&out.HTTPProxy, &out.Notes)},
	})
	out.Plain = !encrypt
	if len(out.Take) > 0 && len(out.Exits) == 0 && !d.broken["exits"] {
		d.invalid(n, "take", "connections are taken, and there is no exit to carry them to: write exits")
	}
	d.checkProxies(n, out.Policy)
	for i, f := range out.Forwards {
		if f.To.IsValid() && !out.HasAnnounced() && out.ExitFor(f.To.Addr()) < 0 {
			d.invalid(n, fmt.Sprintf("forward[%d].to", i), "no exit has the destination %s: add a prefix with it to the destinations of an exit", f.To.Addr())
		}
	}
	d.needs(n, "", "name", "the relay agent has no %s: write for example %[1]s: east")
	certificates := out.TLS != relay.TLS{} || d.broken["tls"]
	switch {
	case certificates && out.KeyFile != "":
		d.invalid(n, "tls", "agents authenticate each other by the key or by certificates: leave key or tls out")
	case certificates && !encrypt:
		d.invalid(n, "encrypt", "streams without encryption need the shared key: write key instead of tls, or leave encrypt out")
	case !certificates:
		d.needs(n, "", "key", "%s is missing: write the file with the key that all agents share, for example %[1]s: /etc/headgate/relay.key")
	}
	if out.Accept.Listen == "" && len(out.Exits) == 0 && !d.broken["accept"] && !d.broken["exits"] {
		d.invalid(n, "", "the relay agent neither accepts streams nor has an exit: write accept or exits")
	}
	if out.Network != "" && len(out.Take) == 0 && !out.Accept.KeepSource && !d.broken["take"] && !d.broken["accept"] {
		d.invalid(n, "network", "a network can send the agent no connection: it neither takes any (take) nor connects with the client's address (accept.keep_source)")
	}
	d.checkRelay(n, out.Policy)
	return out
}

// announced in place of an exit's destinations means those that it announces.
const announced = "announced"

// exit parses an exit.
func (d *decoder) exit(n *node, key string) (e relay.Exit) {
	engine, sos, written := "stripe", relay.SOS{Streams: 10, Queue: 1000, Block: 8192}, false
	d.fields(n, key, "an exit", []field{
		{"address", one(d, &e.Address, addressAndPort)},
		{"destinations", oneOrMore(d, &e.Destinations, func(s string) ([]netip.Prefix, error) {
			if s == announced {
				e.Announced = true
				return nil, nil
			}
			p, err := prefix(s)
			if err != nil {
				err = fmt.Errorf("%w, or %s for those that the exit announces", err, announced)
			}
			return p, err
		})},
		{"engine", one(d, &engine, relayEngine)},
		{"sos", func(n *node, key string) {
			written = true
			d.fields(n, key, "the scheme of the thesis", []field{
				{"streams", one(d, &sos.Streams, streamCount)},
				{"queue", one(d, &sos.Queue, numberFrom(1, 1_000_000))},
				{"block", one(d, &sos.Block, numberFrom(16, 1<<20))},
			})
		}},
		{"paths", func(n *node, key string) {
			d.each(n, key, "a path", func(n *node, key string) {
				var p relay.Path
				d.fields(n, key, "a path", []field{
					{"name", one(d, &p.Name, serverName)},
					{"address", one(d, &p.Address, addressAndPort)},
					{"source", one(d, &p.Source, ipAddress)},
					{"device", one(d, &p.Device, serverName)},
					{"mark", one(d, &p.Mark, markValue)},
					{"streams", one(d, &p.Streams, streamCount)},
					{"first_streams", one(d, &p.FirstStreams, streamCount)},
					{"congestion", oneOrMore(d, &p.Congestion, congestionControl)},
				})
				d.needs(n, key, "name", "the path has no %s: write for example %[1]s: a")
				if slices.ContainsFunc(e.Paths, func(o relay.Path) bool { return o.Name == p.Name }) && p.Name != "" {
					d.invalid(n, key+".name", "%q is already the name of another path: names must be unique", p.Name)
				}
				e.Paths = append(e.Paths, p)
			})
		}},
	})
	if e.Announced && len(e.Destinations) > 0 {
		d.invalid(n, key+".destinations", "the exit's destinations are a list, or %s by the exit: write one of them", announced)
	}
	if e.Announced && engine == "sos" {
		d.invalid(n, key+".destinations", "an exit with engine: sos announces no destinations: list the prefixes for which it is the exit")
	}
	if engine == "sos" {
		e.SOS = &sos
	} else if written {
		d.invalid(n, key+".sos", "the exit's engine is stripe: write engine: sos, or leave sos out")
	}
	d.needs(n, key, "address", "the exit has no %s: write for example %[1]s: 192.0.2.1:8424")
	d.needs(n, key, "destinations", "%s is missing: list the prefixes for which it is the exit, or write %[1]s: announced for those that it announces")
	if len(e.Paths) == 0 {
		e.Paths = []relay.Path{{Name: "default"}}
	}
	d.checkExit(n, key, e)
	return e
}

func prefix(s string) ([]netip.Prefix, error) {
	p, err := group.ParsePrefix(s)
	return []netip.Prefix{p}, err
}

func relayPorts(s string) ([]relay.Ports, error) {
	p, err := ports(s)
	return []relay.Ports{{From: p.From, To: p.To}}, err
}

func relayCgroup(s string) (string, error) {
	if s == "/" {
		return "", errors.New("every process is in the cgroup /: leave cgroup out, or write a path below it")
	}
	return cgroupPath(s)
}

// maxRTT is a limit for round-trip times that finds mistakes: TCP's first timeout is 1 s.
const maxRTT = 10 * time.Second

func roundTripTime(s string) (time.Duration, error) {
	v, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a round-trip time: write for example 20ms", s)
	}
	if v <= 0 || v > maxRTT {
		return 0, fmt.Errorf("a round-trip time of %v is not above 0 and at most %v: write for example 20ms, or leave the key out", v, maxRTT)
	}
	return v, nil
}

func absoluteFile(s string) (string, error) {
	if s == "" || s[0] != '/' {
		return "", fmt.Errorf("%q is not an absolute path: write for example /etc/headgate/%s", s, s)
	}
	return s, nil
}

func ipAddress(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err != nil {
		return a, fmt.Errorf("%q is not an IP address", s)
	}
	return a, nil
}

func addressAndPort(s string) (netip.AddrPort, error) {
	a, err := netip.ParseAddrPort(s)
	if err != nil || a.Port() == 0 {
		return a, fmt.Errorf("%q is not an IP address and port: write for example 192.0.2.1:80 or [2001:db8::1]:80", s)
	}
	return a, nil
}

// listenAddress parses an address to listen on, whose host may be left out.
func listenAddress(s string) (string, error) {
	host, port, err := net.SplitHostPort(s)
	if err == nil {
		_, err = portNumber(port)
	}
	if err == nil && host != "" {
		_, err = netip.ParseAddr(host)
	}
	if err != nil {
		return "", fmt.Errorf("%q is not an address to listen on: write for example 127.0.0.1:8080 or :8080", s)
	}
	return s, nil
}

func markValue(s string) (uint32, error) {
	v, err := strconv.ParseUint(s, 0, 32)
	if err != nil || v == 0 {
		return 0, fmt.Errorf("%q is not a mark: write a number above 0, such as 0x10", s)
	}
	return uint32(v), nil
}

func congestionControl(s string) ([]string, error) {
	if s != "cubic" && s != "bbr" {
		return nil, fmt.Errorf("%q is not a congestion control: write cubic, bbr or both", s)
	}
	return []string{s}, nil
}

func relayEngine(s string) (string, error) {
	if s != "stripe" && s != "sos" {
		return "", fmt.Errorf("%q is not an engine: write stripe, or sos for the scheme of the thesis", s)
	}
	return s, nil
}

// numberFrom parses a whole number within bounds.
func numberFrom(least, most int) func(string) (int, error) {
	return func(s string) (int, error) {
		v, err := strconv.Atoi(s)
		if err != nil || v < least || v > most {
			return 0, fmt.Errorf("%q is not a number from %d to %d", s, least, most)
		}
		return v, nil
	}
}

// MaxStreams is the most streams of a path. The thesis needed 100 for 1 Gbit/s at 1 % of loss.
const MaxStreams = 256

func streamCount(s string) (int, error) {
	v, err := strconv.Atoi(s)
	if err != nil || v < 1 || v > MaxStreams {
		return 0, fmt.Errorf("%q is not a number of streams: write 1 to %d", s, MaxStreams)
	}
	return v, nil
}
