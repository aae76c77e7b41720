package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/internal/relaylldp"
	"headgate.dev/headgate/relay"
)

// An agent at a network of OpenFlow switches announces itself by an interface (package relaylldp), so that the network sends connections to it.

const (
	// networkInterval is how often it does. The network takes one that is silent for 800 ms for gone.
	networkInterval = 250 * time.Millisecond
	// endings is in how many frames each connection that has ended is named: a frame can be lost.
	endings = 2
	// maxEndings is how many connections wait to be named. Of the others the network sees that no packet comes.
	maxEndings = 20_000
	// announcedExits and announcedPrefixes are as many as fit into a frame.
	announcedExits, announcedPorts, announcedPrefixes, announcedOfExit = 8, 8, 64, 27
)

// networkAgent announces an agent to a network.
type networkAgent struct {
	policy relay.Policy
	log    *slog.Logger

	mu    sync.Mutex
	ended []ending
	cut   bool // it was logged that not all destinations are announced
}

// ending is a connection that has ended, with the number of frames that have yet to name it.
type ending struct {
	relaylldp.Connection
	frames int
}

// end takes a connection that has ended.
func (a *networkAgent) end(c ConnectionStatus) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.ended) < maxEndings {
		a.ended = append(a.ended, ending{relaylldp.Connection{Client: c.Client, Server: c.Destination}, endings})
	}
}

// run announces the agent until ctx ends, and then that it leaves. Once replaced reports that another process announces it, the connections that have ended
// here alone are named.
func (a *networkAgent) run(ctx context.Context, dialers []carrier, replaced func() bool) error {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0) // protocol 0: it receives nothing
	if err != nil {
		return fmt.Errorf("cannot announce the agent to the network by %s, which needs the capability CAP_NET_RAW: %w", a.policy.Network, err)
	}
	defer unix.Close(fd)
	failed := false
	send := func(leaving bool) {
		var state *relaylldp.Announcement
		if !replaced() {
			state = a.state(dialers, leaving)
		}
		err := a.send(fd, state)
		if (err != nil) != failed {
			failed = err != nil
			if failed {
				a.log.Warn("cannot announce the agent to the network, trying again", "device", a.policy.Network, "error", err)
			}
		}
	}
	for {
		send(false)
		select {
		case <-time.After(networkInterval):
		case <-ctx.Done():
			for range endings {
				send(true)
			}
			return nil
		}
	}
}

// send sends what the agent says of itself, unless that is nil, and the connections that have ended.
func (a *networkAgent) send(fd int, state *relaylldp.Announcement) error {
	dev, err := net.InterfaceByName(a.policy.Network)
	if err != nil {
		return err
	}
	if len(dev.HardwareAddr) != 6 {
		return errors.New("it is no Ethernet interface")
	}
	out := func(one relaylldp.Announcement) error {
		frame, err := one.Frame([6]byte(dev.HardwareAddr))
		if err != nil {
			return err
		}
		return unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: dev.Index})
	}
	if state != nil {
		err = out(*state)
	}
	a.mu.Lock()
	ended := a.ended
	a.ended = nil
	a.mu.Unlock()
	var again []ending
	for len(ended) > 0 && err == nil {
		n := min(len(ended), relaylldp.MaxEnded)
		one := relaylldp.Announcement{Name: a.policy.Name}
		for _, e := range ended[:n] {
			one.Ended = append(one.Ended, e.Connection)
			if e.frames--; e.frames > 0 {
				again = append(again, e)
			}
		}
		if err = out(one); err == nil {
			ended = ended[n:]
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = append(append(ended, again...), a.ended...)
	a.ended = a.ended[:min(len(a.ended), maxEndings)]
	return err
}

// state returns what the agent says of itself.
func (a *networkAgent) state(dialers []carrier, leaving bool) *relaylldp.Announcement {
	s := &relaylldp.Announcement{Name: a.policy.Name, Takes: len(a.policy.Take) > 0, Connects: a.policy.Accept.Listen != "" && a.policy.Accept.KeepSource, Leaving: leaving}
	left, cut := announcedPrefixes, false
	for n, e := range (exits{a.policy, dialers}).present().Exits {
		if dialers[n].Streams() == 0 {
			continue
		}
		if len(s.Exits) == announcedExits {
			cut = true
			break
		}
		all := e.Destinations
		if most := min(left, announcedOfExit); len(all) > most {
			all, cut = all[:most], true
		}
		left -= len(all)
		s.Exits = append(s.Exits, relaylldp.Exit{Address: e.Address.Addr().Unmap(), Ports: portsOf(e), Destinations: all})
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if cut && !a.cut {
		a.cut = true
		a.log.Warn("not all destinations of the exits are announced to the network: connections to the others go direct", "exits", announcedExits, "prefixes", announcedPrefixes, "of_an_exit", announcedOfExit)
	}
	return s
}

// portsOf returns the ports of an exit's address to which its paths lead.
func portsOf(e relay.Exit) (all []uint16) {
	for _, p := range e.Paths {
		if a := e.AddressOf(p); a.Addr().Unmap() == e.Address.Addr().Unmap() && !slices.Contains(all, a.Port()) && len(all) < announcedPorts {
			all = append(all, a.Port())
		}
	}
	return all
}
