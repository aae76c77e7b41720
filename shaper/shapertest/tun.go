package shapertest

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// withoutLinkHeader shapes a device whose packets start with the IP header, like those of
// WireGuard, PPP and tunnels: a TUN device whose other end is the test. Packets must arrive and
// be counted in both directions.
func withoutLinkHeader(s *suite) {
	const name, packets = "tun", 10
	far := s.tun(name)
	for _, args := range [][]string{{"addr", "add", "10.88.0.1/24", "dev", name}, {"link", "set", name, "up"}} {
		labtest.Run(s, s.server, "ip", args...)
	}
	host, peer := ap("10.88.0.1:5003"), ap("10.88.0.2:5003")
	var socket *net.UDPConn
	s.do(func() (err error) { socket, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(host)); return err })
	defer socket.Close()
	p := hostPlan(four(s, 100*unit.Mbit), four(s, 50*unit.Mbit))
	p.Dev = name
	for _, perspective := range []group.Perspective{group.Host, group.Guest} {
		p.Perspective = perspective
		s.do(func() error { _, err := s.engine.Apply(p); return err })
		buf := make([]byte, 2000)
		to := build(group.Packet{Proto: group.UDP, Src: peer.Addr(), Dst: host.Addr(), SPort: peer.Port(), DPort: host.Port()}, shape{payload: 100}).bytes[14:]
		sum(to)
		for n := range packets {
			if _, err := far.Write(to); err != nil {
				s.Fatal(err)
			}
			_ = socket.SetReadDeadline(time.Now().Add(time.Second))
			if _, from, err := socket.ReadFromUDPAddrPort(buf); err != nil || from != peer {
				s.Fatalf("packet %d to the host: from %v, %v", n, from, err)
			}
			if _, err := socket.WriteToUDPAddrPort(buf[:100], peer); err != nil {
				s.Fatal(err)
			}
			_ = far.SetReadDeadline(time.Now().Add(time.Second))
			for {
				got, err := far.Read(buf)
				if err != nil {
					s.Fatalf("packet %d from the host: %v", n, err)
				}
				if got == len(to) && buf[0]>>4 == 4 && buf[9] == group.UDP {
					break // otherwise IPv6 neighbour discovery
				}
			}
		}
		eventually(s, time.Second, func() string {
			for _, in := range []bool{false, true} {
				var st shaper.State
				s.do(func() (err error) { st, err = s.engine.Observe(name); return err })
				if g := find(s, direction(st, in), "g3"); g.Packets != packets || g.Drops > 0 {
					return fmt.Sprintf("%v, in %v: sent %d packets of g3, counted: %+v", perspective, in, packets, g)
				}
			}
			return ""
		})
		s.do(func() error { return s.engine.Clear(name) })
	}
}

// tun creates a TUN device on the server, and returns its other end.
func (s *suite) tun(name string) (far *os.File) {
	s.Helper()
	s.do(func() error {
		fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		req, err := unix.NewIfreq(name)
		if err != nil {
			return err
		}
		req.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, req); err != nil {
			unix.Close(fd)
			return err
		}
		// Only now, because polling fails before the descriptor is attached to a device.
		far = os.NewFile(uintptr(fd), "/dev/net/tun")
		return nil
	})
	s.Cleanup(func() { far.Close() })
	return far
}

// sum sets the checksum of an IPv4 header, which the host verifies.
func sum(packet []byte) {
	var n uint32
	for i := 0; i < 20; i += 2 {
		n += uint32(binary.BigEndian.Uint16(packet[i:]))
	}
	n = n&0xffff + n>>16
	binary.BigEndian.PutUint16(packet[10:], ^uint16(n&0xffff+n>>16))
}
