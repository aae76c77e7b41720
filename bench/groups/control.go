package groups

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/bench/peers"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// controlCase is a flood of one kind of control traffic, from a guest with a ceiling.
type controlCase struct {
	in   bool
	kind dressed
}

const (
	controlLimit   = 20 * unit.Mbit
	controlCeiling = unit.Mbit
	// controlFlood is the rate of the guest, and controlDownload that of a download of another group: at 60
	// Mbit/s it has 2,500 acknowledgements a second.
	controlFlood    = 20 * controlCeiling
	controlDownload = 60 * unit.Mbit
)

const policeName = "policer by hand"

func controlCases() (out []controlCase) {
	for _, in := range []bool{false, true} {
		for _, k := range dressedKinds {
			out = append(out, controlCase{in, k})
		}
	}
	return out
}

// inSmoke reports whether the case is part of a smoke run.
func (c controlCase) inSmoke() bool {
	return c.kind.name == "dhcp" && !c.in || c.kind.name == "ack" && c.in
}

func (c controlCase) id(what string) string {
	return fmt.Sprintf("control/%s/%s/%s", direction(c.in), c.kind.name, what)
}

func (c controlCase) claims() []bench.Claim {
	const note = "the group has a ceiling of 1 Mbit/s, the limit is 20 Mbit/s, and the group sends 20 Mbit/s"
	return []bench.Claim{
		bench.NewClaim(c.id("passes"), "rate of the group, relative to its ceiling", controlPasses, policeName).WithNote(note),
		bench.NewClaim(c.id("download"), "rate of a download of another group, relative to that without the flood", controlOthers, policeName),
		bench.NewClaim(c.id("first-ping"), "answered first pings, relative to those without the flood", controlOthers, policeName),
	}
}

// plan has the guest's two groups below one ceiling, and a group for the rest.
func (c controlCase) plan() (shaper.Plan, error) {
	guest := group.Group{Name: "guest", Guarantee: group.Amount{Rate: controlCeiling}, Ceiling: group.Amount{Rate: controlCeiling}}
	for i, first := range guestFirst {
		own := group.MAC{Address: [6]byte{first, 0, 0, 0, 0, guestMark}, Mask: [6]byte{0xff, 0, 0, 0, 0, 0xff}}
		guest.Groups = append(guest.Groups, group.Group{Name: string(rune('a' + i)), Match: []group.Selector{{SMAC: []group.MAC{own}}}})
	}
	rest := group.Group{Name: "rest", Guarantee: group.Amount{Rate: 18 * unit.Mbit}, Default: true}
	return plan(group.Direction{Limit: controlLimit, Groups: []group.Group{guest, rest}}, c.in)
}

// controlTiming returns the durations of settling, of the part without the flood, of the start of the
// flood, and of the part with it.
func controlTiming(quick bool) (settle, quiet, begin, flooded time.Duration) {
	const ms = time.Millisecond
	if quick {
		return 400 * ms, 800 * ms, 400 * ms, 1200 * ms
	}
	return 600 * ms, 2 * time.Second, 500 * ms, 3 * time.Second
}

func (c controlCase) run(ctx context.Context, r *bench.Run) error {
	if !c.inSmoke() && leftOut(r) {
		return nil
	}
	if err := c.measure(ctx, r, bench.Ours, engineOfOurs()); err != nil {
		return err
	}
	return peerError(r.Sheet(policeName), c.measure(ctx, r, policeName, peers.Police{Rate: controlCeiling, Burst: 32 << 10, SMAC: guestMark}))
}

func engineOfOurs() limiter {
	l, err := newLimiter(bench.Ours)
	if err != nil {
		panic(err) // it needs no plan
	}
	return l
}

// controlFound is the result of one limiter.
type controlFound struct {
	Offered float64 `json:"offered"` // bit/s of the flood
	Passes  float64 `json:"passes"`
	Without timesOf `json:"without_flood"`
	With    timesOf `json:"with_flood"`
}

// timesOf is a part of the run.
type timesOf struct {
	Download float64   `json:"download"` // bit/s
	Pings    int       `json:"first_pings"`
	Answered int       `json:"first_pings_answered"`
	Ms       []float64 `json:"first_ping_ms"`
}

func (c controlCase) measure(ctx context.Context, r *bench.Run, name string, who limiter) (err error) {
	p, err := c.plan()
	if err != nil {
		return err
	}
	l, err := lab.Up(ctx, lab.Rig(lab.RigOptions{Name: lab.UniqueName("bench"), NoOffload: true}))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if err := within(l, func() error { return who.Apply(p) }); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer within(l, func() error { return who.Clear(dev) })
	// The ends of the flood, and the address of the far end.
	from, fromDev, to, toDev := l.Node("server"), dev, l.Node("router"), "server"
	if c.in {
		from, fromDev, to, toDev = to, toDev, from, fromDev
	}
	far, err := addressOn(to, toDev)
	if err != nil {
		return err
	}
	seen, err := newTap(to, toDev)
	if err != nil {
		return err
	}
	defer seen.close()
	settle, quiet, begin, flooded := controlTiming(r.Quick)
	// The download's data run against the flood, and its acknowledgements with it.
	data, sink := ends(!c.in)
	session, err := traffic.Start(ctx, l.Host, []traffic.Flow{{
		Name: "download", From: data, To: sink, Protocol: traffic.TCP, Congestion: "cubic", DstPort: basePort, Schedule: traffic.Constant(controlDownload),
	}}, traffic.Options{Interval: 50 * time.Millisecond})
	if err != nil {
		return err
	}
	defer func() { session.Stop(); session.Wait() }()
	since := func() time.Duration { return time.Duration(traffic.MonotonicNow() - session.StartMonotonicNs()) }
	var found controlFound
	if err := bench.Sleep(ctx, settle); err != nil {
		return err
	}
	type part struct{ from, to time.Duration }
	during := func(t *timesOf, length time.Duration) (p part, err error) {
		p.from = since()
		err = pings(ctx, from, fromDev, far, length, t)
		p.to = since()
		return p, err
	}
	without, err := during(&found.Without, quiet)
	if err != nil {
		return err
	}
	flood, err := newDressedFlood(from, fromDev, c.kind)
	if err != nil {
		return err
	}
	defer flood.stop()
	if err := bench.Sleep(ctx, begin); err != nil {
		return err
	}
	passed, sent, began := seen.bytes.Load(), flood.sent.Load(), time.Now()
	with, err := during(&found.With, flooded)
	if err != nil {
		return err
	}
	seconds := time.Since(began).Seconds()
	found.Passes = float64(seen.bytes.Load()-passed) * 8 / seconds
	found.Offered = float64(flood.sent.Load()-sent) * 8 / seconds
	flood.stop()
	session.Stop()
	result := session.Wait().Flow("download")
	if result.Error != "" {
		return fmt.Errorf("the download: %s", result.Error)
	}
	found.Without.Download = result.Between(without.from, without.to).DeliveredRate()
	found.With.Download = result.Between(with.from, with.to).DeliveredRate()
	c.judge(r.Sheet(name), found)
	return nil
}

func (c controlCase) judge(s *bench.Sheet, f controlFound) {
	s.Keep("found", f)
	s.Set(c.id("passes"), 100*f.Passes/float64(controlCeiling))
	s.Set(c.id("download"), 100*f.With.Download/f.Without.Download)
	part := func(t timesOf) float64 { return float64(t.Answered) / float64(t.Pings) }
	s.Set(c.id("first-ping"), 100*part(f.With)/part(f.Without))
	s.Note(c.id("passes"), "%s of %s kbit/s passed", bench.Number(f.Passes/1e3), bench.Number(f.Offered/1e3))
	s.Note(c.id("download"), "%s Mbit/s, without the flood %s", bench.Number(f.With.Download/1e6), bench.Number(f.Without.Download/1e6))
	if len(f.With.Ms) > 0 && len(f.Without.Ms) > 0 {
		s.Note(c.id("first-ping"), "%d of %d, median %s ms; without the flood %d of %d, %s ms", f.With.Answered, f.With.Pings, bench.Number(bench.Median(f.With.Ms)),
			f.Without.Answered, f.Without.Pings, bench.Number(bench.Median(f.Without.Ms)))
	}
}

// addressOn returns the IPv4 address of a node's device.
func addressOn(n *lab.Node, dev string) (address string, err error) {
	err = n.Do(func() error {
		i, err := net.InterfaceByName(dev)
		if err != nil {
			return err
		}
		all, err := i.Addrs()
		for _, a := range all {
			if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil {
				address = ip.IP.String()
			}
		}
		if err == nil && address == "" {
			err = fmt.Errorf("%s has no IPv4 address", dev)
		}
		return err
	})
	return address, err
}

var pingTime = regexp.MustCompile(`time=([0-9.]+) ms`)

// pings sends first pings for a time: the neighbour is unknown before each.
func pings(ctx context.Context, from *lab.Node, dev, to string, length time.Duration, t *timesOf) error {
	for end := time.Now().Add(length); time.Now().Before(end); {
		if out, err := from.Command(ctx, "ip", "neigh", "flush", "dev", dev).CombinedOutput(); err != nil {
			return fmt.Errorf("cannot flush the neighbour table: %w: %s", err, out)
		}
		t.Pings++
		out, _ := from.Command(ctx, "ping", "-c", "1", "-W", "1", to).CombinedOutput() // it fails without an answer
		if m := pingTime.FindSubmatch(out); m != nil {
			ms, _ := strconv.ParseFloat(string(m[1]), 64)
			t.Ms = append(t.Ms, ms)
			t.Answered++
		}
		if err := bench.Sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// dressedFlood sends a kind's frames until it is stopped.
type dressedFlood struct {
	sent atomic.Uint64 // bytes
	done chan struct{}
	once sync.Once
	all  sync.WaitGroup
}

func newDressedFlood(n *lab.Node, dev string, kind dressed) (*dressedFlood, error) {
	fd, to, err := packetSocket(n, dev, 0)
	if err != nil {
		return nil, err
	}
	// Packets in the group's queue do not block their sender, as with a guest.
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 64<<20); err != nil {
		unix.Close(fd)
		return nil, err
	}
	f := &dressedFlood{done: make(chan struct{})}
	frames := kind.frames(rand.New(rand.NewPCG(1, 1)))
	f.all.Go(func() {
		defer unix.Close(fd)
		const tick = time.Millisecond
		owed, last := 0.0, time.Now()
		for i := 0; ; {
			select {
			case <-f.done:
				return
			case <-time.After(tick):
			}
			now := time.Now()
			owed = min(owed+float64(controlFlood)/8*now.Sub(last).Seconds(), float64(controlFlood)/8/20)
			for last = now; owed > 0; i++ {
				b := frames[i%len(frames)]
				owed -= float64(len(b))
				if unix.Sendto(fd, b, unix.MSG_DONTWAIT, to) == nil { // the queue may be full
					f.sent.Add(uint64(len(b)))
				}
			}
		}
	})
	return f, nil
}

func (f *dressedFlood) stop() {
	f.once.Do(func() { close(f.done) })
	f.all.Wait()
}

// packetSocket opens a socket on a device for frames of a protocol; with 0 it receives nothing.
func packetSocket(n *lab.Node, dev string, protocol uint16) (fd int, to *unix.SockaddrLinklayer, err error) {
	err = n.Do(func() error {
		i, err := net.InterfaceByName(dev)
		if err != nil {
			return err
		}
		to = &unix.SockaddrLinklayer{Ifindex: i.Index, Protocol: protocol>>8 | protocol<<8}
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
			return fmt.Errorf("cannot open a packet socket on %s: %w", dev, err)
		}
		return nil
	})
	return fd, to, err
}

// tap counts the guest's frames that arrive, behind the ingress hook: a socket for all protocols would
// count before it (net/core/dev.c, __netif_receive_skb_core).
type tap struct {
	fds   []int
	bytes atomic.Uint64
	done  chan struct{}
	all   sync.WaitGroup
}

func newTap(n *lab.Node, dev string) (_ *tap, err error) {
	t := &tap{done: make(chan struct{})}
	defer func() {
		if err != nil {
			t.close()
		}
	}()
	// Frames whose source address ends in guestMark.
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: 11},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: guestMark},
		{Code: unix.BPF_RET | unix.BPF_K, K: 1 << 18}, {Code: unix.BPF_RET | unix.BPF_K, K: 0},
	}
	for _, protocol := range protocolsOfDressed {
		fd, to, err := packetSocket(n, dev, protocol)
		if err != nil {
			return nil, err
		}
		t.fds = append(t.fds, fd)
		err = errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 32<<20),
			unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}),
			unix.Bind(fd, to))
		if err != nil {
			return nil, fmt.Errorf("cannot listen on %s: %w", dev, err)
		}
	}
	t.all.Go(t.receive)
	return t, nil
}

func (t *tap) receive() {
	var poll []unix.PollFd
	for _, fd := range t.fds {
		poll = append(poll, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	buf := make([]byte, 64)
	for {
		select {
		case <-t.done:
			return
		default:
		}
		_, _ = unix.Poll(poll, 20)
		for _, fd := range t.fds {
			for {
				n, _, err := unix.Recvfrom(fd, buf, unix.MSG_TRUNC)
				if err != nil {
					break
				}
				t.bytes.Add(uint64(n))
			}
		}
	}
}

func (t *tap) close() {
	close(t.done)
	t.all.Wait()
	for _, fd := range t.fds {
		unix.Close(fd)
	}
}

func controlBenches() (out []bench.Case) {
	for _, c := range controlCases() {
		out = append(out, bench.Case{
			Name: c.id("")[:len(c.id(""))-1], Claims: c.claims(), Run: c.run,
			Alongside: inSlow(c.inSmoke()),
			Takes: func(quick bool) time.Duration {
				settle, quiet, begin, flooded := controlTiming(quick)
				if quick && !c.inSmoke() {
					return 0
				}
				return settle + quiet + begin + flooded + 2*overhead
			},
		})
	}
	return out
}
