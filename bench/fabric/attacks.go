package fabric

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/bench/controllers"
	"headgate.dev/headgate/fabric/openflow"
)

// malformed returns what a peer sends to the controller that is no switch. Kind 7 sends nothing.
func malformed(kind int, random *rand.Rand) []byte {
	hello, _ := openflow.Append(nil, 1, openflow.NewHello(openflow.Version))
	junk := make([]byte, 100)
	for i := range junk {
		junk[i] = byte(random.Uint32())
	}
	switch kind % 8 {
	case 0:
		return junk
	case 1:
		return []byte("GET / HTTP/1.1\r\nHost: controller\r\n\r\n")
	case 2: // OpenFlow 1.0
		return []byte{1, 0, 0, 8, 0, 0, 0, 1}
	case 3: // a length of 0
		return []byte{4, 0, 0, 0, 0, 0, 0, 1}
	case 4: // a message that does not end
		return append(hello, 4, byte(openflow.TypePacketIn), 255, 255, 0, 0, 0, 2)
	case 5: // features that are too short
		return append(hello, 4, byte(openflow.TypeFeaturesReply), 0, 12, 0, 0, 0, 1, 1, 2, 3, 4)
	case 6: // junk in messages of the right length
		for t := range 20 {
			body := junk[:random.IntN(60)]
			hello = append(hello, 4, byte(t), 0, byte(openflow.HeaderLen+len(body)), 0, 0, 0, byte(t))
			hello = append(hello, body...)
		}
		return hello
	}
	return nil
}

// sendMalformed opens 200 connections a second to the controller.
func sendMalformed(ctx context.Context, s *siege) error {
	random := rand.New(rand.NewPCG(1, 1))
	var open sync.WaitGroup
	defer open.Wait()
	kind := 0
	return at(ctx, 200, func() error {
		c, err := dial(s.Node(controllerNode).Do, "127.0.0.1:"+controllers.OpenFlowPort)
		if err != nil {
			return err
		}
		kind++
		s.count(1)
		text := malformed(kind, random)
		open.Go(func() {
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(2 * time.Second))
			_, _ = c.Write(text)
			for b := make([]byte, 1000); ; {
				if _, err := c.Read(b); err != nil {
					return // it is refused, or has said nothing for long enough
				}
			}
		})
		return nil
	})
}

const etherLLDP = 0x88cc

// captureDiscovery waits for a discovery frame at the attacker's port.
func captureDiscovery(ctx context.Context, s *siege) error {
	got := make(chan []byte, 1)
	r, err := openRaw(s.Node("h1"), func(f []byte) {
		if len(f) > 14 && binary.BigEndian.Uint16(f[12:]) == etherLLDP {
			select {
			case got <- slices.Clone(f):
			default:
			}
		}
	})
	if err != nil {
		return err
	}
	defer r.close()
	select {
	case s.discovery = <-got:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(15 * time.Second):
		return errors.New("no discovery frame comes to a port of a host within 15 s")
	}
}

// forgeDiscovery sends discovery frames with one byte changed.
func forgeDiscovery(ctx context.Context, s *siege) error {
	random := rand.New(rand.NewPCG(1, 2))
	return at(ctx, 100, func() error {
		s.count(1)
		return s.attacker.send(forged(s.discovery, random))
	})
}

// forged changes a byte after the Ethernet header, most often of the ids or the code.
func forged(frame []byte, random *rand.Rand) []byte {
	f := slices.Clone(frame)
	i := 14 + random.IntN(len(f)-14)
	f[i] ^= byte(1 + random.IntN(255))
	return f
}

// meetVictim lets the network know the attacker and the victim.
func meetVictim(ctx context.Context, s *siege) error {
	if p, err := ping(ctx, s.Node("h1"), s.Node("h2"), false); err != nil || !p.another {
		return errors.Join(errors.New("h1 does not reach h2"), err)
	}
	return bench.Sleep(ctx, 500*time.Millisecond)
}

// broadcastMAC is the address of all.
var broadcastMAC = net.HardwareAddr{255, 255, 255, 255, 255, 255}

func spoofMAC(ctx context.Context, s *siege) error {
	n := uint32(0)
	return at(ctx, 100, func() error {
		n++
		s.count(1)
		return s.attacker.send(numbered(broadcastMAC, s.victim.mac, 1, n))
	})
}

// victimMoved reports whether the victim is shown elsewhere.
func victimMoved(ctx context.Context, s *siege, shown api.Network) (n int, why string, err error) {
	p, err := s.device("s2", "h2")
	if err != nil {
		return 0, "", err
	}
	want := portOf(s.Switch("s2").DatapathID(), p.Number)
	for _, h := range shown.Hosts {
		if at := fmt.Sprintf("%s/%d", h.At.Switch, h.At.Port); h.Mac == s.victim.mac.String() && at != want {
			n, why = n+1, "the victim is shown at "+at
		}
	}
	return n, why, nil
}

func spoofARP(ctx context.Context, s *siege) error {
	victim, err := s.Node("h2").Addr(false)
	if err != nil {
		return err
	}
	target, err := s.Node(bystander).Addr(false)
	if err != nil {
		return err
	}
	frames := [][]byte{
		arpReply(broadcastMAC, s.attacker.mac, victim, victim),
		arpReply(broadcastMAC, s.attacker.mac, victim, target),
	}
	n := 0
	return at(ctx, 100, func() error {
		n++
		s.count(1)
		return s.attacker.send(frames[n%2])
	})
}

// arpReply says that an address is that of a MAC (RFC 826).
func arpReply(dst, mac net.HardwareAddr, address, to netip.Addr) []byte {
	b := append(append([]byte{}, dst...), mac...)
	b = append(b, 0x08, 0x06, 0, 1, 0x08, 0, 6, 4, 0, 2)
	a, t := address.As4(), to.As4()
	b = append(append(b, mac...), a[:]...)
	b = append(append(b, dst...), t[:]...)
	return append(b, make([]byte, max(60-len(b), 0))...)
}

// victimReplaced reports whether the attacker is shown with the victim's address, or the bystander has its MAC address for that.
func victimReplaced(ctx context.Context, s *siege, shown api.Network) (n int, why string, err error) {
	victim, err := s.Node("h2").Addr(false)
	if err != nil {
		return 0, "", err
	}
	for _, h := range shown.Hosts {
		if h.Mac == s.attacker.mac.String() && slices.Contains(h.Addresses, victim.String()) {
			n, why = n+1, "the attacker is shown with the victim's address"
		}
	}
	// The bystander has resolved the address during the attack.
	out, err := s.Node(bystander).Command(ctx, "ip", "neigh", "show", victim.String()).CombinedOutput()
	if strings.Contains(string(out), s.attacker.mac.String()) {
		n, why = n+1, strings.Trim(why+"; the bystander has the attacker's MAC address for the victim's address", "; ")
	}
	return n, why, err
}

// flood sends 20,000 frames a second, each from and to other addresses.
func flood(ctx context.Context, s *siege) error {
	random := rand.New(rand.NewPCG(1, 3))
	mac := func() net.HardwareAddr {
		m := make(net.HardwareAddr, 6)
		binary.BigEndian.PutUint32(m[2:], random.Uint32())
		m[0] = 2
		return m
	}
	began := time.Now()
	err := at(ctx, 20_000, func() error {
		s.count(1)
		// A full queue of the device is one of the attacker's own.
		_ = s.attacker.send(numbered(mac(), mac(), 1, 0))
		return nil
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note = fmt.Sprintf("; the attacker sent %.0f frames a second", float64(s.sent)/time.Since(began).Seconds())
	return err
}

// hostsPerPort is how many hosts are learned at a port (hosts_per_port in docs/fabric.md).
const hostsPerPort = 64

// tooManyHosts reports hosts at the attacker's port above the bound.
func tooManyHosts(_ context.Context, s *siege, shown api.Network) (int, string, error) {
	p, err := s.device("s1", "h1")
	if err != nil {
		return 0, "", err
	}
	n, want := 0, portOf(s.Switch("s1").DatapathID(), p.Number)
	for _, h := range shown.Hosts {
		if fmt.Sprintf("%s/%d", h.At.Switch, h.At.Port) == want {
			n++
		}
	}
	if n > hostsPerPort {
		return n - hostsPerPort, fmt.Sprintf("%d hosts are shown at the attacker's port", n), nil
	}
	return 0, "", nil
}
