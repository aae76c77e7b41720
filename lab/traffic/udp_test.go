package traffic

import (
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/unit"
)

// loopback is this machine as a host.
type loopback struct{}

func (loopback) Do(fn func() error) error           { return fn() }
func (loopback) Addr(ipv6 bool) (netip.Addr, error) { return netip.MustParseAddr("127.0.0.1"), nil }

// Fast flows send dozens of datagrams in a call, but only if each is one packet: the kernel accepts no
// others in a batch.
func TestUDPBatch(t *testing.T) {
	for _, c := range []struct {
		rate    unit.Rate
		payload int
		batch   int
	}{{unit.Mbit, 0, 1}, {segmentFrom, 0, 44}, {Unlimited, 100, 64}, {unit.Gbit, 1472, 44}, {unit.Gbit, 1473, 1}, {Unlimited, 30_000, 1}} {
		f := &flow{send: -1, recv: -1, joins: -1, Flow: Flow{Name: "f", From: "a", To: "b", Protocol: UDP, Payload: c.payload, Schedule: Constant(c.rate)}}
		from, to, err := f.ends(func(string) (Host, error) { return loopback{}, nil })
		if err == nil {
			err = f.openUDP(from, to, newUDPBatch())
		}
		if err != nil {
			t.Fatal(err)
		}
		u := f.sender.(*udpSender)
		n, err := u.send(u.batch)
		if u.batch != c.batch || n != c.batch || err != nil {
			t.Errorf("%v of %d bytes: %d in a batch, %d sent, %v", c.rate, c.payload, u.batch, n, err)
		}
		unix.Close(f.send)
		unix.Close(f.recv)
	}
}
