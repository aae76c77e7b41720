package host

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"headgate.dev/headgate/relay"
)

// counting is a carrier that keeps the connections.
type counting struct {
	carrier
	apps []net.Conn
}

func (c *counting) Carry(app net.Conn, _ netip.AddrPort) error {
	c.apps = append(c.apps, app)
	return nil
}

func (c *counting) Streams() int { return 1 }

// A connection between the addresses of one that is carried is a loop, until that one has ended.
func TestLoop(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	app, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer app.Close()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	taken := c.(*net.TCPConn)
	exits := []relay.Exit{{Address: netip.MustParseAddrPort("192.0.2.1:8424"), Destinations: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}
	carries := &counting{}
	by := &taker{policy: relay.Policy{Exits: exits}, dialers: []carrier{carries}}
	if err := by.take(taken); err != nil || len(carries.apps) != 1 {
		t.Fatalf("the first: %v", err)
	}
	if err := by.take(taken); !errors.Is(err, errLoop) {
		t.Errorf("the second: %v", err)
	}
	carries.apps[0].Close()
	if len(by.open.open) != 0 {
		t.Error("a connection that has ended is kept")
	}
	exits[0].Address = netip.MustParseAddrPort("127.0.0.1:8424")
	if err := by.take(taken); !errors.Is(err, errLoop) {
		t.Errorf("from the exit itself: %v", err)
	}
	exits[0].Destinations = nil
	if err := by.take(taken); err == nil {
		t.Error("a connection without an exit is carried")
	}
}
