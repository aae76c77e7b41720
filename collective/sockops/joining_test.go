package sockops

import (
	"fmt"
	"net"
	"os"
	"testing"

	"headgate.dev/headgate/lab/labtest"
)

// The next process completes an AddConnection during which a process was killed: an open
// connection has callbacks from then on, and the slot of one that has ended is freed.
func TestKilledWithinAdopt(t *testing.T) {
	labtest.NeedRoot(t)
	name := fmt.Sprintf("test-joining-%d", os.Getpid())
	tab, err := Open(name, 2)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	f, err := c.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	id, _, err := tab.AddConnection(int(f.Fd()), 3, 0)
	if err != nil {
		t.Fatal(err)
	}
	tab.all[0].Asked = joining
	var i uint32
	if err := tab.unused.LookupAndDelete(nil, &i); err != nil {
		t.Fatal(err)
	}
	tab.all[i].Asked, tab.all[i].Cookie = joining, 12345
	tab.Close()
	tab, err = Open(name, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	defer tab.Remove()
	n := 0
	for c := range tab.Connections() {
		if n++; c.ID != id {
			t.Errorf("connection %d is in the table, although it has ended", c.ID)
		}
	}
	if n != 1 || tab.all[0].Asked != joined {
		t.Errorf("%d connections are in the table, want 1 with callbacks: %d", n, tab.all[0].Asked)
	}
	if err := tab.unused.LookupAndDelete(nil, &i); err != nil {
		t.Errorf("the other slot was not freed: %v", err)
	}
}
