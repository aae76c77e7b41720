package doctor

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"

	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// Ceiling is the throughput of this machine through a pair of devices in direction "out",
// with all CPUs sending UDP and no receiver, with groups and without.
type Ceiling struct {
	Senders           int       `json:"senders"`
	PacketsPerSecond  float64   `json:"packets_per_second"` // 60-byte frames
	Bandwidth         unit.Rate `json:"bandwidth"`          // super-packets of 64 KB
	WithoutPPS        float64   `json:"packets_per_second_without_groups"`
	BandwidthWithout  unit.Rate `json:"bandwidth_without_groups"`
	MeasuredInSeconds float64   `json:"measured_in_s"`
}

const (
	// phase is the length of each of the four measurements.
	phase = 400 * time.Millisecond
	// noLimit is above the throughput of one queue on any machine.
	noLimit = unit.Tbit
	// smallest is the payload of a 60-byte frame.
	smallest = 18
	// segment is the payload of the segments of a super-packet, and segments how many fit
	// into 64 KB.
	segment  = 1448
	segments = 44
)

// measure measures the throughput. It must be called in the doctor's network namespace.
func measure(e shaper.Shaper) (*Ceiling, error) {
	began := time.Now()
	if err := makePair(); err != nil {
		return nil, err
	}
	p, err := simplePlan(near, noLimit, true, false)
	if err != nil {
		return nil, err
	}
	there, err := addresses()
	if err != nil {
		return nil, err
	}
	c := &Ceiling{Senders: runtime.NumCPU()}
	run := func(pps *float64, bps *unit.Rate) error {
		small, err := flood(c.Senders, there, smallest, 0)
		if err != nil {
			return err
		}
		large, err := flood(c.Senders, there, segment*segments, segment)
		*pps, *bps = small.packets, unit.Rate(large.bytes*8)
		return err
	}
	if err := run(&c.WithoutPPS, &c.BandwidthWithout); err != nil {
		return nil, err
	}
	if _, err := e.Apply(p); err != nil {
		return nil, err
	}
	err = errors.Join(run(&c.PacketsPerSecond, &c.Bandwidth), e.Clear(near), removePair())
	c.MeasuredInSeconds = time.Since(began).Seconds()
	return c, err
}

// addresses gives the other end an address with a static neighbour entry, because no host answers ARP there.
func addresses() (*net.UDPAddr, error) {
	here, err := netlink.LinkByName(near)
	if err != nil {
		return nil, err
	}
	there, err := netlink.LinkByName(farEnd)
	if err != nil {
		return nil, err
	}
	peer := net.IPv4(192, 0, 2, 2) // reserved for documentation, so in use nowhere (RFC 5737)
	err = netlink.AddrAdd(here, &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(192, 0, 2, 1), Mask: net.CIDRMask(30, 32)}})
	if err == nil {
		err = netlink.NeighAdd(&netlink.Neigh{
			LinkIndex: here.Attrs().Index, State: netlink.NUD_PERMANENT, IP: peer, HardwareAddr: there.Attrs().HardwareAddr,
		})
	}
	if err != nil {
		return nil, fmt.Errorf("cannot configure the devices of the measurement: %w", err)
	}
	return &net.UDPAddr{IP: peer, Port: 9}, nil
}

// rates has packets and bytes per second.
type rates struct{ packets, bytes float64 }

// flood sends at the highest possible rate, and measures the rate at which packets arrive at the
// other end.
func flood(senders int, to *net.UDPAddr, payload, segment int) (rates, error) {
	var stop atomic.Bool
	var all sync.WaitGroup
	for range senders {
		c, err := sender(to, segment)
		if err != nil {
			stop.Store(true)
			all.Wait()
			return rates{}, fmt.Errorf("cannot send: %w", err)
		}
		all.Go(func() {
			defer c.Close()
			batch := make([]ipv4.Message, 32)
			for i := range batch {
				batch[i].Buffers = [][]byte{make([]byte, payload)}
			}
			for p := ipv4.NewPacketConn(c); !stop.Load(); {
				if _, err := p.WriteBatch(batch, 0); err != nil && !errors.Is(err, unix.ENOBUFS) {
					return
				}
			}
		})
	}
	defer all.Wait()
	defer stop.Store(true)
	time.Sleep(phase / 8) // until all senders are running
	before, began, err := arrived()
	if err != nil {
		return rates{}, err
	}
	time.Sleep(phase - phase/8)
	after, ended, err := arrived()
	s := ended.Sub(began).Seconds()
	return rates{float64(after.RxPackets-before.RxPackets) / s, float64(after.RxBytes-before.RxBytes) / s}, err
}

func arrived() (netlink.LinkStatistics, time.Time, error) {
	l, err := netlink.LinkByName(farEnd)
	if err != nil {
		return netlink.LinkStatistics{}, time.Time{}, err
	}
	return *l.Attrs().Statistics, time.Now(), nil
}

// sender opens a socket in the network namespace of the calling thread, with UDP segmentation
// offload unless segment is 0.
func sender(to *net.UDPAddr, segment int) (*net.UDPConn, error) {
	c, err := net.DialUDP("udp4", nil, to)
	if err != nil || segment == 0 {
		return c, err
	}
	raw, err := c.SyscallConn()
	if err == nil {
		err = errors.Join(raw.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_SEGMENT, segment)
		}), err)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}
