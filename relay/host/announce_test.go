package host

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/relay"
	"headgate.dev/headgate/relay/stripe"
)

// An entry has the destinations that its exit announces while a stream is open, and those of the next exit at the same
// address. It has none of an exit that does not answer, and no more than it uses.
func TestAnnouncement(t *testing.T) {
	many := make([]netip.Prefix, maxAnnounced+10)
	for n := range many {
		many[n] = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(n >> 8), byte(n), 0}), 24)
	}
	if text := announce(many); len(text) > stripe.MaxPayload {
		t.Errorf("the answer has %d bytes", len(text))
	}
	l, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	l.Close()
	var log safeBuffer
	d := NewDialer(newKey(t, "k", true), relay.Exit{Address: netip.MustParseAddrPort(at), Announced: true, Paths: []relay.Path{{Name: "any", Streams: 2}}}, options)
	d.Log = slog.New(slog.NewTextHandler(&log, nil))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { d.Run(ctx); close(done) }()
	defer func() { cancel(); <-done }()
	for n, destinations := range [][]netip.Prefix{prefixes("10.2.0.0/16", "2001:db8::/32"), prefixes("10.3.0.0/16"), many} {
		l, err := Listen(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		a := &Acceptor{Auth: newKey(t, "k", true), Options: options, Accept: relay.Accept{Destinations: destinations}, Log: slog.New(slog.DiscardHandler)}
		go a.Serve(l)
		want := destinations[:min(len(destinations), maxAnnounced)]
		until(t, "the destinations are known", func() bool { return slices.Equal(d.Announced(), want) })
		if got := d.status().Destinations; !slices.Equal(got, want) {
			t.Errorf("%d: the status has %v", n, got)
		}
		until(t, "both streams are open", func() bool { return d.Streams() == 2 })
		l.Close()
		a.Close()
		until(t, "no stream is open", func() bool { return len(d.Announced()) == 0 })
	}
	if text := log.String(); strings.Count(text, "more destinations than an entry uses") != 1 {
		t.Errorf("the log is\n%s", text)
	}
}

// What an exit announces is checked: malformed answers are not used, and what nft would refuse neither.
func TestMalformedAnnouncement(t *testing.T) {
	for text, want := range map[string]string{
		`{"destinations": ["10.2.0.1/16", "10.2.0.0/16", "", "::ffff:10.0.0.0/104", "2001:db8::/32"]}`: "[10.2.0.0/16 2001:db8::/32]",
		`{"destinations": ["10.2.0.0"]}`: "[]",
		`{"destinations": null}`:         "[]",
		`[]`:                             "[]",
	} {
		d := NewDialer(newKey(t, "k", true), relay.Exit{Announced: true}, options)
		d.Log = slog.New(slog.DiscardHandler)
		d.announced(d.now, []byte(text))
		if got := fmt.Sprint(d.destinations); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// Connections go over an exit to the destinations that it announces, and follow it when these change. The host's own
// addresses, and those of the exit, are left out.
func TestTakeAnnounced(t *testing.T) {
	r := newRelayed(t, false, 0, 7)
	exit := r.accept()
	all := exit.Accept.Destinations
	exit.Accept.Destinations = prefixes("192.0.2.0/24")
	first := startAgent(t, r.exit, exit)
	exits := r.exits()
	exits[0].Destinations, exits[0].Announced = nil, true
	defer endAgent(t, startAgent(t, r.entry, relay.Policy{Name: "entry", Exits: exits, Take: []relay.Rule{{}}}))
	until(t, "the announcement is used", func() bool { return strings.Contains(r.rules(), "192.0.2.0/24") })
	if _, carried := r.open(0); carried {
		t.Error("a connection is carried to what the exit does not announce")
	}
	endAgent(t, first)
	until(t, "the announcement is forgotten", func() bool { return !strings.Contains(r.rules(), "192.0.2.0/24") })
	exit.Accept.Destinations = append(all, netip.PrefixFrom(r.address.Addr(), 24).Masked())
	defer endAgent(t, startAgent(t, r.exit, exit))
	until(t, "the next announcement is used", func() bool { return strings.Contains(r.rules(), "tproxy") })
	if _, carried := r.open(0); !carried {
		t.Error("a connection is not carried to what the exit announces")
	}
	// A connection that is taken is accepted, and one that is not is refused: nothing listens at the port.
	own, err := r.entry.Addr(false)
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []netip.Addr{own, r.address.Addr()} {
		do(t, r.entry, func() error {
			c, err := net.DialTimeout("tcp", netip.AddrPortFrom(to, 9).String(), 5*time.Second)
			if err == nil {
				c.Close()
				t.Errorf("a connection to %s is taken", to)
			}
			return nil
		})
	}
}

// A session whose streams were all lost asks again for the exit's destinations.
func TestAnnouncedAfterLoss(t *testing.T) {
	p := newPair(t, 0)
	d := NewDialer(nil, relay.Exit{Announced: true}, options)
	d.ctx = t.Context()
	s := d.now
	p.entry.observed, s.link = s.link.observed, p.entry
	p.exit.observed.announces = announce(prefixes("10.2.0.0/16"))
	for number := range uint32(3) {
		p.add(number + 1)
		until(t, "the announcement is used", func() bool { return len(d.Announced()) == 1 })
		p.streams[number+1].Close()
		until(t, "the announcement is forgotten", func() bool { return d.Announced() == nil })
	}
}
