package sockops_test

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"headgate.dev/headgate/collective"
	"headgate.dev/headgate/collective/sockops"
	"headgate.dev/headgate/lab/labtest"
)

// pipe returns both ends of a TCP connection of IPv6 over loopback.
func pipe(t testing.TB) (a, b *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	d, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); d.Close() })
	return c.(*net.TCPConn), d.(*net.TCPConn)
}

// file returns a descriptor of a connection.
func file(t testing.TB, c *net.TCPConn) *os.File {
	t.Helper()
	f, err := c.File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// A connection that joins is in the requested set, although it matches no cgroup and no
// rule. It is read like others, and is removed when it ends.
func TestAdopt(t *testing.T) {
	labtest.NeedRoot(t)
	tab := open(t, 4)
	defer tab.Close()
	defer tab.Remove()
	if err := tab.Attach(sockops.Set{Number: 3}); err != nil {
		t.Fatal(err)
	}
	a, b := pipe(t)
	if n := len(sending(tab)); n != 0 {
		t.Fatalf("%d connections are in the table without a request", n)
	}
	var id collective.ID
	for _, to := range []uint32{3, 4} { // it stays in the first set
		f := file(t, a)
		got, set, err := tab.AddConnection(int(f.Fd()), to, 2)
		f.Close()
		if err != nil || set != 3 || id != 0 && got != id {
			t.Fatalf("connection %d is in set %d: %v", got, set, err)
		}
		id = got
	}
	for range 5 {
		for _, c := range []*net.TCPConn{a, b} {
			if _, err := c.Write(make([]byte, 100)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	all := sending(tab)
	if len(all) != 1 || all[0].ID != id || !all[0].Joined || all[0].Weight != 2 || all[0].Acked < 400 || all[0].Local.String() != a.LocalAddr().String() || all[0].Remote.String() != a.RemoteAddr().String() {
		t.Fatalf("the table has %+v, want connection %d", all, id)
	}
	a.Close()
	b.Close()
	time.Sleep(50 * time.Millisecond)
	if all := sending(tab); len(all) != 0 {
		t.Errorf("the connection has ended and is still in the table: %+v", all[0])
	}
	// All four slots are reusable.
	for i := range 5 {
		c, _ := pipe(t)
		_, _, err := tab.AddConnection(int(file(t, c).Fd()), 3, 0)
		if want := i == 4; errors.Is(err, sockops.ErrFull) != want {
			t.Errorf("connection %d: %v", i, err)
		}
	}
}

// Descriptors that cannot be in a set cause an error, and take no slot.
func TestAdoptErrors(t *testing.T) {
	labtest.NeedRoot(t)
	tab := open(t, 1)
	defer tab.Close()
	defer tab.Remove()
	pipeEnd, _, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipeEnd.Close()
	plain := net.ListenConfig{}
	plain.SetMultipathTCP(false) // MPTCP is not a TCP connection, either
	l, err := plain.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	listener, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	c, d := pipe(t)
	ended := file(t, c)
	c.Close()
	d.SetLinger(0)
	d.Close()
	time.Sleep(20 * time.Millisecond)
	for _, x := range []struct {
		f    *os.File
		want error
	}{{pipeEnd, sockops.ErrNoConnection}, {listener, sockops.ErrNotOpen}, {ended, sockops.ErrNotOpen}} {
		if _, _, err := tab.AddConnection(int(x.f.Fd()), 3, 0); !errors.Is(err, x.want) {
			t.Errorf("%v, want %v", err, x.want)
		}
	}
	c, _ = pipe(t)
	if _, _, err := tab.AddConnection(int(file(t, c).Fd()), 3, 0); err != nil {
		t.Errorf("the slot was not freed: %v", err)
	}
}
