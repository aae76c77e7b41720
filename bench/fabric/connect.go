package fabric

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab"
)

// connected is the network of the row: five switches in a ring with two more cables, and two hosts at each.
var connected = ring(5, 10, [2]int{1, 3}, [2]int{2, 4})

func connectCases() []bench.Case {
	var peers []string
	for _, m := range otherMethods {
		peers = append(peers, m.name)
	}
	return []bench.Case{
		{
			Name: "connect/pairs", Takes: bench.Takes(12*time.Second, 4*time.Minute), Run: connectPairs,
			Claims: []bench.Claim{
				bench.NewClaim("connect/ipv4", "first ping minus second, the worst of all pairs", first5, peers...),
				bench.NewClaim("connect/ipv6", "first ping minus second, the worst of all pairs", first5, peers...),
				bench.NewClaim("connect/lost", "pings without an answer", lost, peers...),
				bench.NewClaim("connect/broadcast/extra", "broadcasts that arrive again at a port, or at their sender", copies, peers...),
				bench.NewClaim("connect/broadcast/lost", "broadcasts that do not arrive at a port", lost, peers...),
			},
		},
		{
			Name: "connect/storms", Takes: bench.Takes(9*time.Second, 10*time.Minute+10*time.Second), Run: connectStorms,
			Claims: []bench.Claim{
				bench.NewClaim("connect/storms", "broadcasts that arrive ten times or more at a port in 10 min, while cables are added and taken", storms),
				bench.NewClaim("connect/storms/copies", "the most copies of a broadcast at a port meanwhile", bench.Target{Op: bench.Measured, Unit: "copies"}),
			},
		},
	}
}

// connectPairs pings between all pairs, and sends broadcasts, by all methods.
func connectPairs(ctx context.Context, r *bench.Run) error {
	if err := pingAll(ctx, r, ours); err != nil || r.Quick && !r.Few {
		return err
	}
	for _, m := range otherMethods {
		if err := pingAll(ctx, r, m); err != nil {
			r.Sheet(m.name).Fail(err)
		}
	}
	return ctx.Err()
}

func pingAll(ctx context.Context, r *bench.Run, m method) (err error) {
	n, err := m.up(ctx, connected)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	sheet := r.Sheet(m.name)
	missed := 0
	for _, version := range []struct {
		id  string
		six bool
	}{{"connect/ipv4", false}, {"connect/ipv6", true}} {
		id := version.id
		f, err := pingPairs(ctx, n.Lab, pairs(len(connected.hosts), r.Quick), version.six)
		if err != nil {
			return err
		}
		missed += f.lost
		for _, who := range f.failed[:min(len(f.failed), 5)] {
			sheet.Note("connect/lost", "%s: %s", id[len("connect/"):], who)
		}
		if len(f.over) == 0 {
			sheet.Fail(fmt.Errorf("%s: no ping was answered", id))
			continue
		}
		sheet.Set(id, slices.Max(f.over))
		sheet.Note(id, "of %d pairs; median %s ms", len(f.over), bench.Number(bench.Median(f.over)))
		sheet.Keep(id, f.over)
	}
	sheet.Set("connect/lost", float64(missed))
	const each = 20
	b, err := startBroadcasts(n.Lab, len(connected.hosts))
	if err != nil {
		return err
	}
	for range bench.Pick[uint32](r.Quick, 5, each) {
		if err := errors.Join(b.send(), bench.Sleep(ctx, 50*time.Millisecond)); err != nil {
			b.stop()
			return err
		}
	}
	time.Sleep(500 * time.Millisecond)
	got := b.stop()
	extra, missing, most := got.count(len(connected.hosts), b.n)
	sheet.Set("connect/broadcast/extra", float64(extra))
	sheet.Set("connect/broadcast/lost", float64(missing))
	sheet.Note("connect/broadcast/extra", "%d broadcasts from each of %d hosts; most copies at a port: %d", b.n, len(connected.hosts), most)
	return ctx.Err()
}

// broadcasts are sent by all hosts, and counted at all hosts.
type broadcasts struct {
	sockets []*raw
	n       uint32 // sent by each

	mu  sync.Mutex
	got tally
}

func startBroadcasts(l *lab.Lab, hosts int) (*broadcasts, error) {
	b := &broadcasts{got: tally{}}
	for n := range hosts {
		at := n + 1
		r, err := openRaw(l.Node(hostName(at)), func(f []byte) {
			if sender, i, ok := readNumbered(f); ok {
				b.mu.Lock()
				b.got[copyKey{at, sender, i}]++
				b.mu.Unlock()
			}
		})
		if err != nil {
			b.stop()
			return nil, err
		}
		b.sockets = append(b.sockets, r)
	}
	return b, nil
}

// send sends a broadcast from each host.
func (b *broadcasts) send() error {
	var failed error
	for i, r := range b.sockets {
		failed = errors.Join(failed, r.send(numbered(net.HardwareAddr{255, 255, 255, 255, 255, 255}, r.mac, uint32(i+1), b.n)))
	}
	b.n++
	return failed
}

// stop ends the reception, and returns what arrived.
func (b *broadcasts) stop() tally {
	for _, r := range b.sockets {
		r.close()
	}
	return b.got
}

// connectStorms takes cables and adds them again, each time another one, while all hosts send a broadcast each half second.
func connectStorms(ctx context.Context, r *bench.Run) (err error) {
	n, err := ours.up(ctx, connected)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	b, err := startBroadcasts(n.Lab, len(connected.hosts))
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(1, uint64(r.N)))
	length, pause := bench.Pick(r.Quick, 5*time.Second, 10*time.Minute), bench.Pick(r.Quick, time.Second, 3*time.Second)
	changes := 0
	var taken []int // cables
	for end := time.Now().Add(length); time.Now().Before(end) && ctx.Err() == nil; changes++ {
		cable := random.IntN(len(connected.cables))
		if i := slices.Index(taken, cable); i >= 0 {
			taken = slices.Delete(taken, i, i+1)
			err = n.plug(ctx, connected.cables[cable], true)
		} else {
			taken = append(taken, cable)
			err = n.plug(ctx, connected.cables[cable], false)
		}
		for until := time.Now().Add(pause); err == nil && time.Now().Before(until); {
			err = errors.Join(b.send(), bench.Sleep(ctx, 500*time.Millisecond))
		}
		if err != nil {
			break
		}
	}
	time.Sleep(500 * time.Millisecond)
	got := b.stop()
	if err != nil {
		return err
	}
	_, _, most := got.count(len(connected.hosts), b.n)
	sheet := r.Sheet(bench.Ours)
	sheet.Set("connect/storms", float64(got.storms()))
	sheet.Set("connect/storms/copies", float64(most))
	sheet.Note("connect/storms", "%v with %d changes; %d broadcasts from each of %d hosts", length, changes, b.n, len(connected.hosts))
	return ctx.Err()
}

// plug adds the ports of a cable to their switches, or takes them away.
func (n *network) plug(ctx context.Context, cable [2]int, in bool) error {
	var args []string
	for i := range cable {
		p, err := n.device(switchName(cable[i]), switchName(cable[1-i]))
		if err != nil {
			return err
		}
		if in {
			args = append(args, "--", "add-port", switchName(cable[i]), p.Device, "--", "set", "interface", p.Device, fmt.Sprintf("ofport_request=%d", p.Number))
		} else {
			args = append(args, "--", "del-port", switchName(cable[i]), p.Device)
		}
	}
	_, err := n.switches(ctx, "ovs-vsctl", append([]string{"--db=" + n.SwitchesDatabase(), "--timeout=10"}, args...)...)
	return err
}
