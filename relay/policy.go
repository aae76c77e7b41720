package relay

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Policy is the configuration of an agent.
type Policy struct {
	Name string
	// KeyFile has the key that all agents share, "" without one.
	KeyFile string
	// TLS has the files by which agents authenticate each other instead.
	TLS TLS
	// Plain leaves streams between agents unencrypted.
	Plain bool
	// Accept makes the agent an exit.
	Accept Accept
	// Exits are the agents to which connections are carried.
	Exits []Exit
	// Forwards are the listeners for applications.
	Forwards []Forward
	// Socks and HTTPProxy are the listeners for applications that name their destinations, by SOCKS5 and by
	// HTTP CONNECT.
	Socks, HTTPProxy Proxy
	// Network is the interface at a switch of an OpenFlow network to which the agent announces itself, "" for none.
	Network string
	// Take are the rules by which connections are taken transparently: those that this host forwards, and its own.
	// A connection is taken if it matches a rule, and its destination has an exit.
	Take []Rule
}

// TLS names PEM files: the agent's certificate and its key, and the authority that has signed the certificates of all
// agents.
type TLS struct{ Certificate, Key, Authority string }

// Rule matches connections. What is empty matches any.
type Rule struct {
	Src, Dst []netip.Prefix
	Ports    []Ports
	// Cgroup is the path of a cgroup v2 below the mount point. The rule then matches only connections of the agent's own
	// host, of processes in the cgroup or below it. While the cgroup does not exist, it matches none.
	Cgroup string
	// MinRTT is the shortest round-trip time to the exit of which a connection is taken, 0 for any. The time to an exit
	// is the shortest of its open streams.
	MinRTT time.Duration
}

// String describes which connections match.
func (r Rule) String() string {
	var out []string
	add := func(word string, values ...fmt.Stringer) {
		for n, v := range values {
			if n == 0 {
				out = append(out, word, v.String())
			} else {
				out = append(out, "or", v.String())
			}
		}
	}
	add("from", stringers(r.Src)...)
	add("to", stringers(r.Dst)...)
	add("port", stringers(r.Ports)...)
	if r.Cgroup != "" {
		out = append(out, "of cgroup "+r.Cgroup)
	}
	if r.MinRTT > 0 {
		out = append(out, fmt.Sprintf("while the round-trip time is at least %v", r.MinRTT))
	}
	if len(out) == 0 {
		return "any"
	}
	return strings.Join(out, " ")
}

func stringers[T fmt.Stringer](all []T) (out []fmt.Stringer) {
	for _, one := range all {
		out = append(out, one)
	}
	return out
}

// Ports is a range of ports.
type Ports struct{ From, To uint16 }

func (p Ports) String() string {
	if p.From == p.To {
		return strconv.Itoa(int(p.From))
	}
	return fmt.Sprintf("%d-%d", p.From, p.To)
}

// Accept is how an agent accepts the streams of others.
type Accept struct {
	// Listen is the address for streams, "" for none. More are further ones, so that each path can have its own.
	Listen string
	More   []string
	// Destinations are the prefixes to which the exit connects.
	Destinations []netip.Prefix
	// KeepSource connects to them with the client's address, so that servers see it. What they answer must pass
	// the exit.
	KeepSource bool
}

// Exit is an agent to which connections are carried.
type Exit struct {
	// Address is where it accepts streams.
	Address netip.AddrPort
	// Destinations are the prefixes for which it is the exit.
	Destinations []netip.Prefix
	// Announced means that the exit announces its destinations to the agent, which has none before.
	Announced bool
	// Paths are the ways to it; at least one.
	Paths []Path
	// SOS, if set, carries connections by the thesis's scheme, for comparison.
	SOS *SOS
}

// SOS has the parameters of the thesis's scheme (docs/seeds.md, "SOS Sockets").
type SOS struct {
	// Streams is the number of streams of a connection, over all paths in turns.
	Streams int
	// Queue is how many packets the receiver stores.
	Queue int
	// Block is the size of a packet in bytes, with its header of 8.
	Block int
}

// Path is a way to an exit.
type Path struct {
	Name string
	// Address is an address of the exit that only this path leads to, if it has one.
	Address netip.AddrPort
	// Source, Device and Mark select the path by policy routing; each may be left out.
	Source netip.Addr
	Device string
	Mark   uint32
	// Streams is the number of streams, 0 for as many as help.
	Streams int
	// FirstStreams is the number with which the agent begins to look for it, 0 for its default.
	FirstStreams int
	// Congestion are the congestion controls from which the path's is chosen, the preferred one first; empty are all
	// that the agent has.
	Congestion []string
}

// AddressOf returns the exit's address on a path.
func (e Exit) AddressOf(p Path) netip.AddrPort {
	if p.Address.IsValid() {
		return p.Address
	}
	return e.Address
}

// String describes what selects the path, "" for the path of the exit's address.
func (p Path) String() string {
	var out []string
	if p.Address.IsValid() {
		out = append(out, "to "+p.Address.String())
	}
	if p.Source.IsValid() {
		out = append(out, "from "+p.Source.String())
	}
	if p.Device != "" {
		out = append(out, "by "+p.Device)
	}
	if p.Mark != 0 {
		out = append(out, fmt.Sprintf("mark %#x", p.Mark))
	}
	return strings.Join(out, " ")
}

// Forward is a listener whose connections go to one destination.
type Forward struct {
	Listen string
	To     netip.AddrPort
}

// Proxy is a listener for applications that name their destinations. A destination without an exit is connected to
// directly.
type Proxy struct {
	// Listen is the address, "" for none.
	Listen string
	// UsersFile has the names and passwords of its users, "" if applications need none.
	UsersFile string
}

// Allows reports whether the exit connects to a destination.
func (a Accept) Allows(to netip.Addr) bool {
	for _, d := range a.Destinations {
		if d.Contains(to.Unmap()) {
			return true
		}
	}
	return false
}

// Addresses returns the addresses for streams.
func (a Accept) Addresses() []string {
	if a.Listen == "" {
		return nil
	}
	return append([]string{a.Listen}, a.More...)
}
