package host

import (
	"encoding/json"
	"log/slog"
	"net"
	"net/netip"
	"slices"

	"headgate.dev/headgate/relay"
	"headgate.dev/headgate/relay/stripe"
)

// An entry may ask an exit to which destinations it connects (Exit.Announced). It asks on each stream until it knows:
// they stay the same for a session, because an exit with another configuration is another process. The question and the
// answer are Pings with Fin like goAway, which the session neither sends nor counts. An exit of a version that does not
// know the question ignores it.

// announcing is the Offset of question and answer.
const announcing = 1

// maxAnnounced is how many prefixes an entry uses of an exit. The longest ones, and those of an exit that has more, fit
// into a frame.
const maxAnnounced = 1000

// askDestinations is the question. The answer has a payload.
var askDestinations = stripe.Frame{Kind: stripe.Ping, Fin: true, Offset: announcing}

func isAnnouncing(f stripe.Frame) bool { return isApart(f) && f.Offset == announcing }

// announcement is the answer.
type announcement struct {
	Destinations []netip.Prefix `json:"destinations"`
}

// announce returns the payload of an exit's answer. It has one prefix more than an entry uses, if there are as many, so
// that the entry notices.
func announce(destinations []netip.Prefix) []byte {
	text, _ := json.Marshal(announcement{destinations[:min(len(destinations), maxAnnounced+1)]}) // has no value that fails
	return text
}

// ask asks for the exit's destinations on a stream that was added. l.mu must be held.
func (l *Link) ask(st *stream) {
	if l.observed.asks != nil && l.observed.asks() {
		st.apart <- askDestinations // has room, and is the first
	}
}

// answer processes a question or an answer.
func (l *Link) answer(st *stream, f stripe.Frame) {
	switch {
	case len(f.Payload) > 0 && l.observed.announced != nil:
		l.observed.announced(f.Payload)
	case len(f.Payload) == 0 && l.observed.announces != nil:
		if len(st.apart) < cap(st.apart)-1 { // else the answer to a former question waits
			answer := askDestinations
			answer.Payload = l.observed.announces
			st.apart <- answer
		}
	}
}

// announced processes the exit's answer in a session.
func (d *Dialer) announced(s *session, payload []byte) {
	var a announcement
	if err := json.Unmarshal(payload, &a); err != nil {
		d.Log.Warn("exit announces malformed destinations, which are not used", "exit", d.Exit.Address, "error", err)
		return
	}
	use := []netip.Prefix{} // not nil: it has announced none
	for _, p := range a.Destinations {
		if len(use) > maxAnnounced {
			break
		}
		if p.IsValid() && !p.Addr().Is4In6() && !slices.Contains(use, p.Masked()) {
			use = append(use, p.Masked())
		}
	}
	more := len(use) > maxAnnounced
	use = use[:min(len(use), maxAnnounced)]
	s.answered.Store(true)
	d.mu.Lock()
	defer d.mu.Unlock()
	if s != d.now && s != d.next || d.destinations != nil && slices.Equal(use, d.destinations) {
		return
	}
	d.destinations = use
	d.Log.Info("exit announces its destinations", "exit", d.Exit.Address, "prefixes", len(use))
	if more {
		d.Log.Warn("exit announces more destinations than an entry uses: the others go direct", "exit", d.Exit.Address, "used", maxAnnounced)
	}
}

// Announced returns the destinations that the exit has announced. They are forgotten while no stream is open, and the next
// stream asks again.
func (d *Dialer) Announced() []netip.Prefix {
	d.mu.Lock()
	defer d.mu.Unlock()
	link := d.now.link
	link.mu.Lock() // so that no stream is added meanwhile, which would not ask
	defer link.mu.Unlock()
	if len(link.streams) == 0 {
		d.destinations = nil
		d.now.answered.Store(false)
	}
	return d.destinations
}

// exits chooses the exits of connections.
type exits struct {
	policy  relay.Policy
	dialers []carrier
}

// present returns the policy with the destinations that exits announce now.
func (e exits) present() relay.Policy {
	p := e.policy
	if !p.HasAnnounced() {
		return p
	}
	p.Exits = slices.Clone(p.Exits)
	for n := range p.Exits {
		if p.Exits[n].Announced {
			p.Exits[n].Destinations = e.dialers[n].Announced()
		}
	}
	return p
}

// of returns the index of the exit for a destination, -1 if there is none now. This host's own addresses have none that
// announces its destinations.
func (e exits) of(to netip.Addr) int {
	p := e.present()
	n := p.ExitFor(to)
	if n >= 0 && p.Exits[n].Announced && isOwn(to) {
		return -1
	}
	return n
}

// isOwn reports whether an address is this host's.
func isOwn(a netip.Addr) bool {
	a = a.Unmap()
	if a.IsLoopback() || a.IsUnspecified() {
		return true
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		slog.Warn("cannot list the addresses of this host", "error", err)
	}
	return slices.ContainsFunc(all, func(one net.Addr) bool {
		n, is := one.(*net.IPNet)
		return is && n.IP.Equal(a.AsSlice())
	})
}
