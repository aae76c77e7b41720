package host

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/internal/relaylldp"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/relay"
)

// heard is the announcements that arrive at a node.
type heard struct {
	mu  sync.Mutex
	all []relaylldp.Announcement
}

// hear reads the announcements that arrive at a node, until the test ends.
func hear(t *testing.T, n *lab.Node) *heard {
	t.Helper()
	h := &heard{}
	protocol := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, 0x88cc))
	fd := -1
	do(t, n, func() (err error) {
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(protocol))
		if err == nil {
			err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000})
		}
		return err
	})
	var reading sync.WaitGroup
	reading.Go(func() {
		b := make([]byte, 2048)
		for t.Context().Err() == nil {
			size, _, err := unix.Recvfrom(fd, b, 0)
			if err != nil {
				continue
			}
			if a, ok, err := relaylldp.Read(b[:size]); ok && err == nil {
				h.mu.Lock()
				h.all = append(h.all, a)
				h.mu.Unlock()
			}
		}
	})
	t.Cleanup(func() {
		reading.Wait()
		unix.Close(fd)
	})
	return h
}

// count returns how many announcements are as they should be.
func (h *heard) count(is func(relaylldp.Announcement) bool) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.all {
		if is(a) {
			n++
		}
	}
	return n
}

// Agents announce to a network what they do, to which exits they have streams, and which connections have ended, and take their leave.
//
//	near ---- far
func TestAnnounceToNetwork(t *testing.T) {
	labtest.NeedRoot(t)
	l := labtest.Up(t, &lab.Topology{Nodes: []lab.NodeSpec{{Name: "near"}, {Name: "far"}}, Links: []lab.LinkSpec{{Ends: [2]string{"near", "far"}}}})
	near, far := l.Node("near"), l.Node("far")
	addr, err := far.Addr(false)
	if err != nil {
		t.Fatal(err)
	}
	device := func(n *lab.Node, peer string) string {
		dev, err := n.Device(peer)
		if err != nil {
			t.Fatal(err)
		}
		return dev
	}
	atNear, atFar := hear(t, near), hear(t, far)
	var server net.Listener
	do(t, far, func() (err error) {
		server, err = net.Listen("tcp", netip.AddrPortFrom(addr, 7).String())
		return err
	})
	defer server.Close()
	go func() {
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				io.Copy(c, c)
			}()
		}
	}()
	destinations := []netip.Prefix{netip.PrefixFrom(addr, 32)}
	first, second := netip.AddrPortFrom(addr, 8424), netip.AddrPortFrom(addr, 8425)
	exit := startAgent(t, far, relay.Policy{
		Name: "far", Network: device(far, "near"), Accept: relay.Accept{Listen: first.String(), More: []string{second.String()}, Destinations: destinations, KeepSource: true},
	})
	entry := startAgent(t, near, relay.Policy{
		Name: "near", Network: device(near, "far"), Take: []relay.Rule{{Ports: []relay.Ports{{From: 9, To: 9}}}}, Forwards: []relay.Forward{{Listen: "127.0.0.1:7001", To: netip.AddrPortFrom(addr, 7)}},
		Exits: []relay.Exit{{Address: first, Destinations: destinations, Paths: []relay.Path{{Name: "one", Address: first}, {Name: "two", Address: second}}}},
	})
	until(t, "the far agent announces that it connects", func() bool {
		return atNear.count(func(a relaylldp.Announcement) bool {
			return a.Name == "far" && a.Connects && !a.Takes && len(a.Exits) == 0
		}) > 0
	})
	until(t, "the near agent announces its exit", func() bool {
		return atFar.count(func(a relaylldp.Announcement) bool {
			return a.Name == "near" && a.Takes && !a.Connects && len(a.Exits) == 1 && a.Exits[0].Address == addr && slices.Equal(a.Exits[0].Ports, []uint16{8424, 8425}) && slices.Equal(a.Exits[0].Destinations, destinations)
		}) > 0
	})
	var c net.Conn
	do(t, near, func() (err error) {
		c, err = net.Dial("tcp", "127.0.0.1:7001")
		return err
	})
	fmt.Fprint(c, "hello")
	c.(*net.TCPConn).CloseWrite()
	if got, err := io.ReadAll(c); err != nil || string(got) != "hello" {
		t.Errorf("read %q, %v", got, err)
	}
	client := addrPort(c.LocalAddr())
	c.Close()
	for name, h := range map[string]*heard{"near": atFar, "far": atNear} {
		until(t, "the end of the connection is announced by "+name, func() bool {
			return h.count(func(a relaylldp.Announcement) bool {
				return a.Name == name && slices.Contains(a.Ended, relaylldp.Connection{Client: client, Server: netip.AddrPortFrom(addr, 7)})
			}) == endings
		})
	}
	endAgent(t, entry)
	endAgent(t, exit)
	for name, h := range map[string]*heard{"near": atFar, "far": atNear} {
		until(t, name+" takes its leave", func() bool {
			return h.count(func(a relaylldp.Announcement) bool { return a.Name == name && a.Leaving }) > 0
		})
	}
}
