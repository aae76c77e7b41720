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
		var p Policy
		in := map[int]bool{}
		seen := map[netip.Prefix]bool{}
		for n := range rapid.IntRange(1, 4).Draw(t, "exits") {
			in[n] = rapid.Bool().Draw(t, "in")
			var e Exit
			for range rapid.IntRange(0, 4).Draw(t, "prefixes") {
				a := address()
				one, err := a.Prefix(rapid.IntRange(0, 24).Draw(t, "bits"))
				if err != nil {
					t.Fatal(err)
				}
				if !seen[one] { // as the configuration requires
					e.Destinations = append(e.Destinations, one)
				}
				seen[one] = true
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
