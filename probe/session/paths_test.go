package session

import (
	"io"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/probe"
)

// forward forwards a TCP and a UDP port with one number to a server, as NAT does, and returns it.
func forward(t *testing.T, to string) int {
	t.Helper()
	tcp, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tcp.Close() })
	go func() {
		for {
			client, err := tcp.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				client.Close()
				return
			}
			go func() { io.Copy(server, client); server.Close() }()
			go func() { io.Copy(client, server); client.Close() }()
		}
	}()
	udp, err := net.ListenPacket("udp", tcp.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err := net.Dial("udp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { udp.Close(); server.Close() })
	clients := make(chan net.Addr, 1)
	go func() {
		b := make([]byte, 65536)
		for n, first := 0, true; ; first = false {
			var from net.Addr
			if n, from, err = udp.ReadFrom(b); err != nil {
				return
			}
			if first {
				clients <- from
			}
			server.Write(b[:n])
		}
	}()
	go func() {
		b, client := make([]byte, 65536), <-clients
		for {
			n, err := server.Read(b)
			if err != nil {
				return
			}
			udp.WriteTo(b[:n], client)
		}
	}()
	return tcp.Addr().(*net.TCPAddr).Port
}

// A server behind a port forward is reached although it knows another port than the client.
func TestForwardedPort(t *testing.T) {
	s := &Server{Auth: key}
	o := serve(t, "127.0.0.1", s)
	o.Host, o.Port = "127.0.0.2", forward(t, s.Addr().String())
	c := dial(t, o)
	if int(c.Peer.Port()) != o.Port {
		t.Errorf("the client uses %v, want port %d", c.Peer, o.Port)
	}
	for _, d := range probe.Directions {
		if got, err := c.Send(t.Context(), d, probe.Train{Parts: []probe.Part{{Count: 20, Size: 1000}}}); err != nil || len(got.Arrived) != 20 {
			t.Errorf("%s: %d of 20 packets arrived, %v", d, len(got.Arrived), err)
		}
	}
}

// Loopback delivers what is sent with one call as one: the client notices, and sends packets apart.
func TestUnsegmented(t *testing.T) {
	c := dial(t, serve(t, "127.0.0.1", &Server{Auth: key}))
	for _, d := range probe.Directions {
		if !c.apart[d] {
			t.Errorf("%s: packets that were sent together are not seen as unsegmented", d)
		}
		got, err := c.Send(t.Context(), d, probe.Train{Parts: []probe.Part{{Count: 64, Size: 1500}}})
		if err != nil {
			t.Fatal(err)
		}
		same := 0
		for i := 1; i < len(got.Arrived); i++ {
			if got.Arrived[i].At == got.Arrived[i-1].At {
				same++
			}
		}
		if same > len(got.Arrived)/4 {
			t.Errorf("%s: %d of %d packets arrived with the one before", d, same, len(got.Arrived))
		}
	}
}

// The control connection has small segments, which pass a path whose "packet too big" is filtered.
func TestControlSegments(t *testing.T) {
	c := dial(t, serve(t, "127.0.0.1", &Server{Auth: key}))
	raw, err := c.conn.NetConn().(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var segment int
	if e := raw.Control(func(fd uintptr) { segment, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG) }); e != nil || err != nil || segment > controlSegment {
		t.Errorf("segments of %d bytes, %v, %v", segment, e, err)
	}
}
