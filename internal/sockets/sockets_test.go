package sockets

import (
	"net"
	"net/netip"
	"testing"
)

func TestIsMissing(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		a, b := c.LocalAddr().(*net.TCPAddr).AddrPort(), c.RemoteAddr().(*net.TCPAddr).AddrPort()
		all, err := ListTCP()
		if err != nil {
			t.Fatal(err)
		}
		if all.IsMissing(a, b) || all.IsMissing(b, a) {
			t.Errorf("%v %v: an open connection is missing", a, b)
		}
		if other := netip.AddrPortFrom(a.Addr(), 1); !all.IsMissing(other, b) {
			t.Errorf("%v %v: there is such a connection", other, b)
		}
	}
	all, err := ListTCP()
	if err != nil {
		t.Fatal(err)
	}
	if all.IsMissing(netip.MustParseAddrPort("203.0.113.1:1"), netip.MustParseAddrPort("203.0.113.2:2")) {
		t.Error("a connection between other hosts is missing here")
	}
}
