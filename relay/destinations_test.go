package relay

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

// An address is in the destinations of some exits if one of them is its exit.
func TestDestinationsOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		address := func() netip.Addr {
			b := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 128, 255}), 2, 2).Draw(t, "bytes")
			if rapid.Bool().Draw(t, "ipv6") {
				return netip.AddrFrom16([16]byte{0x20, b[0], b[1]})
			}
			return netip.AddrFrom4([4]byte{b[0], b[1], 1, 1})
		}
		p := Policy{Accept: Accept{Destinations: []netip.Prefix{netip.MustParsePrefix("1.128.0.0/16")}}}
		in := map[int]bool{}
		seen := map[netip.Prefix]bool{}
		for n := range rapid.IntRange(1, 4).Draw(t, "exits") {
			in[n] = rapid.Bool().Draw(t, "in")
			e := Exit{Announced: rapid.Bool().Draw(t, "announced")}
			if rapid.Bool().Draw(t, "address") {
				e.Address = netip.AddrPortFrom(address(), 8424)
			}
			for range rapid.IntRange(0, 4).Draw(t, "prefixes") {
				a := address()
				one, err := a.Prefix(rapid.IntRange(0, 24).Draw(t, "bits"))
				if err != nil {
					t.Fatal(err)
				}
				if e.Announced || !seen[one] { // as the configuration requires
					e.Destinations = append(e.Destinations, one)
				}
				seen[one] = seen[one] || !e.Announced
			}
			p.Exits = append(p.Exits, e)
		}
		of := p.DestinationsOf(func(n int) bool { return in[n] })
		for range 20 {
			a := address()
			n := p.ExitFor(a)
			if got, want := (Accept{Destinations: of}).Allows(a), n >= 0 && in[n]; got != want {
				t.Fatalf("%s: in %v is %v, the exit is %d", a, of, got, n)
			}
		}
	})
}

// What an exit announces is used by the longest prefix like what is configured, which wins where both are as long. The
// addresses of exits, and what the agent is itself the exit for, are not relayed.
func TestAnnounced(t *testing.T) {
	prefixes := func(all ...string) (out []netip.Prefix) {
		for _, one := range all {
			out = append(out, netip.MustParsePrefix(one))
		}
		return out
	}
	p := Policy{
		Accept: Accept{Destinations: prefixes("10.9.0.0/16")},
		Exits: []Exit{
			{Announced: true, Address: netip.MustParseAddrPort("10.2.0.1:8424"), Destinations: prefixes("10.0.0.0/8", "10.2.0.0/16", "10.3.0.0/16")},
			{Address: netip.MustParseAddrPort("192.0.2.1:8424"), Paths: []Path{{Address: netip.MustParseAddrPort("10.3.0.1:8424")}}, Destinations: prefixes("10.3.0.0/16", "10.9.1.0/24")},
		},
	}
	for to, want := range map[string]int{"10.1.0.1": 0, "10.2.0.2": 0, "10.2.0.1": -1, "10.3.0.2": 1, "10.9.0.1": -1, "10.9.1.1": 1, "192.0.2.1": -1} {
		if got := p.ExitFor(netip.MustParseAddr(to)); got != want {
			t.Errorf("%s: exit %d, want %d", to, got, want)
		}
	}
}
