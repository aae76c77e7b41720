package fabric

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab/traffic"
)

// diamond is two ways from h1 to h2, over s2 and over s3:
//
//	h1 - s1 - s2 - s4 - h2
//	      \--- s3 ---/
var diamond = shape{switches: 4, cables: [][2]int{{1, 2}, {2, 4}, {3, 4}, {1, 3}}, spare: 1, hosts: []int{1, 4}}

// fault is how a part of the path fails. middle is the switch on it.
type fault struct {
	id, what string
	most     bench.Target
	inject   func(ctx context.Context, n *network, middle string) error
}

var faults = []fault{
	{"port-down", "the port on the path goes down, and the switch has a spare one", spareGap, portDown},
	{"silent", "a link of the path passes nothing, and its ports stay up", silentGap, passNothing},
	{"switch-killed", "a switch of the path is removed, and the ports at its links stay up", silentGap, removeSwitch},
}

func failoverCases() (out []bench.Case) {
	var peers []string
	for _, m := range loopedMethods {
		peers = append(peers, m.name)
	}
	for _, f := range faults {
		id := "failover/" + f.id
		out = append(out, bench.Case{
			Name: id, Takes: bench.Takes(7*time.Second, 6*time.Minute), Run: f.run, Alongside: together("failover", 0),
			Claims: []bench.Claim{
				bench.NewClaim(id+"/udp", "longest gap of 50 Mbit/s of UDP at the receiver: "+f.what, f.most, peers...),
				bench.NewClaim(id+"/tcp", "longest gap of a TCP connection of 20 Mbit/s at the receiver, with its retransmission timeout", shownMs, peers...),
			},
		})
	}
	return out
}

// portDown sets the port of the first switch down; the other end loses its carrier too.
func portDown(ctx context.Context, n *network, middle string) error {
	p, err := n.device("s1", middle)
	if err == nil {
		_, err = n.switches(ctx, "ip", "link", "set", "dev", p.Device, "down")
	}
	return err
}

// passNothing replaces the queues at both ends of the first link by such that drop each frame of more than 10 bytes (tc-tbf(8),
// burst), and checks that they do.
func passNothing(ctx context.Context, n *network, middle string) error {
	var ends []string
	for _, e := range [][2]string{{"s1", middle}, {middle, "s1"}} {
		p, err := n.device(e[0], e[1])
		if err != nil {
			return err
		}
		ends = append(ends, p.Device)
	}
	for _, dev := range ends {
		if _, err := n.switches(ctx, "tc", "qdisc", "replace", "dev", dev, "root", "tbf", "rate", "8kbit", "burst", "10b", "limit", "10b"); err != nil {
			return err
		}
	}
	time.Sleep(5 * time.Millisecond) // what was on the way
	before, err := n.counts(ctx)
	if err != nil {
		return err
	}
	time.Sleep(50 * time.Millisecond)
	after, err := n.counts(ctx)
	if err != nil {
		return err
	}
	for _, dev := range ends {
		if after[dev].received != before[dev].received {
			return fmt.Errorf("the link at %s was to pass nothing, and passed %d frames", dev, after[dev].received-before[dev].received)
		}
	}
	return nil
}

func removeSwitch(ctx context.Context, n *network, middle string) error {
	_, err := n.switches(ctx, "ovs-vsctl", "--db="+n.SwitchesDatabase(), "--no-wait", "del-br", middle)
	return err
}

// frames are the frames that a device has received and sent.
type frames struct{ received, sent uint64 }

// counts returns the frames of all devices of the switches.
func (n *network) counts(ctx context.Context) (map[string]frames, error) {
	out, err := n.switches(ctx, "cat", "/proc/net/dev")
	return parseCounts(out), err
}

// parseCounts reads /proc/net/dev (proc_pid_net(5)).
func parseCounts(text string) map[string]frames {
	all := map[string]frames{}
	for line := range strings.Lines(text) {
		name, rest, ok := strings.Cut(line, ":")
		f := strings.Fields(rest)
		if !ok || len(f) < 10 {
			continue
		}
		received, err := strconv.ParseUint(f[1], 10, 64)
		sent, err2 := strconv.ParseUint(f[9], 10, 64)
		if errors.Join(err, err2) == nil {
			all[strings.TrimSpace(name)] = frames{received, sent}
		}
	}
	return all
}

// middleOf returns the switch between s1 and s4 over which most frames go now.
func (n *network) middleOf(ctx context.Context) (string, error) {
	before, err := n.counts(ctx)
	if err != nil {
		return "", err
	}
	time.Sleep(300 * time.Millisecond)
	after, err := n.counts(ctx)
	if err != nil {
		return "", err
	}
	best, most := "", uint64(0)
	for _, middle := range []string{"s2", "s3"} {
		p, err := n.device("s1", middle)
		if err != nil {
			return "", err
		}
		if sent := after[p.Device].sent - before[p.Device].sent; sent > most {
			best, most = middle, sent
		}
	}
	if most < 300 { // 5,000 datagrams a second are sent
		return "", fmt.Errorf("the traffic goes neither over s2 nor over s3: %d frames in 0.3 s", most)
	}
	return best, nil
}

func (f fault) run(ctx context.Context, r *bench.Run) error {
	if err := f.measure(ctx, r, ours, bench.Pick(r.Quick, 1, 10)); err != nil || r.Quick && !r.Few {
		return err
	}
	for _, m := range loopedMethods {
		repeats := 3
		if m.start != nil {
			repeats = 1 // its tree takes a minute to be made, and to be made again
		}
		if err := f.measure(ctx, r, m, bench.Pick(r.Quick, 1, repeats)); err != nil {
			r.Sheet(m.name).Fail(err)
		}
	}
	return ctx.Err()
}

// measure injects the fault several times, each time in a network of its own. The worst counts.
func (f fault) measure(ctx context.Context, r *bench.Run, m method, repeats int) error {
	id := "failover/" + f.id
	var udp, tcp []float64
	var notes []string
	for range repeats {
		g, err := f.once(ctx, m)
		if err != nil {
			return err
		}
		udp, tcp = append(udp, g.udp.Seconds()*1000), append(tcp, g.tcp.Seconds()*1000)
		notes = append(notes, g.note)
	}
	sheet := r.Sheet(m.name)
	for part, gaps := range map[string][]float64{"/udp": udp, "/tcp": tcp} {
		sheet.Set(id+part, slices.Max(gaps))
		sheet.Note(id+part, "the worst of %d, median %s ms", len(gaps), bench.Number(bench.Median(gaps)))
		sheet.Keep(part[1:]+"_ms", gaps)
	}
	sheet.Keep("traffic", notes)
	return ctx.Err()
}

// gaps are the longest gaps of the traffic, from its start.
type gaps struct {
	udp, tcp time.Duration
	note     string
}

// recovers is how long a method may take until traffic flows again: a tree of os-ken's takes 20 s to find out, and 30 s to be made.
func (m method) recovers() time.Duration {
	if m.start != nil {
		return 75 * time.Second
	}
	return 15 * time.Second
}

func (f fault) once(ctx context.Context, m method) (g gaps, err error) {
	n, err := m.up(ctx, diamond)
	if err != nil {
		return g, err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	h1, h2 := n.Node("h1"), n.Node("h2")
	if p, err := ping(ctx, h1, h2, false); err != nil || !p.another {
		return g, errors.Join(errors.New("the hosts do not reach each other"), err)
	}
	began := traffic.MonotonicNow()
	udp, err := startUDP(ctx, h1, h2, 5001, 5, time.Millisecond)
	if err != nil {
		return g, err
	}
	tcp, err := startTCP(ctx, h1, h2, 5002)
	if err != nil {
		_, _ = udp.stop()
		return g, err
	}
	broken := f.breakPath(ctx, n, m, udp, tcp)
	ended := traffic.MonotonicNow()
	gotUDP, err1 := udp.stop()
	gotTCP, err2 := tcp.stop()
	if err := errors.Join(broken, err1, err2, ctx.Err()); err != nil {
		return g, err
	}
	g.udp, g.tcp = gotUDP.gap(began, ended), gotTCP.gap(began, ended)
	lost, repeated := gotUDP.missing(0, udp.sent.Load())
	g.note = fmt.Sprintf("%d of %d datagrams lost, %d repeated, %d reordered; the sender's longest pause was %v; TCP delivered %d bytes",
		lost, udp.sent.Load(), repeated, gotUDP.reordered(), time.Duration(udp.pause.Load()), tcp.received)
	return g, nil
}

// breakPath injects the fault after a second of traffic, and returns a second after both streams flow again.
func (f fault) breakPath(ctx context.Context, n *network, m method, udp, tcp *stream) error {
	if err := bench.Sleep(ctx, time.Second); err != nil {
		return err
	}
	middle, err := n.middleOf(ctx)
	if err != nil {
		return err
	}
	if err := f.inject(ctx, n, middle); err != nil {
		return err
	}
	limit := time.Now().Add(m.recovers())
	if err := bench.Sleep(ctx, time.Second); err != nil { // what is on the way has arrived, and an old path's last frames do not count as recovery
		return err
	}
	for since := traffic.MonotonicNow(); !udp.arrivedSince(since) || !tcp.arrivedSince(since); {
		if err := bench.Sleep(ctx, 10*time.Millisecond); err != nil {
			return err
		}
		if time.Now().After(limit) {
			return nil // the gap lasts until now
		}
	}
	return bench.Sleep(ctx, time.Second)
}
