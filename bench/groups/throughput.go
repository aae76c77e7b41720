package groups

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/internal/plot"
	"headgate.dev/headgate/lab"
)

// throughputCase compares a limit that is not reached with no Headgate.
type throughputCase struct{ in bool }

func (c throughputCase) id() string { return "cost/throughput/" + direction(c.in) }

func (c throughputCase) claim() bench.Claim {
	t := costOut
	if c.in {
		t = costIn
	}
	return bench.NewClaim(c.id(), "rate of one TCP connection under a limit that is not reached, relative to that without, median of pairs", t, htbName)
}

// pairing is the number of pairs that are measured, and the duration of each half.
func pairing(quick bool) (pairs int, each time.Duration) {
	if quick {
		return 2, 500 * time.Millisecond
	}
	return 12, 2 * time.Second
}

func (c throughputCase) run(ctx context.Context, r *bench.Run) (err error) {
	l, err := lab.Up(ctx, lab.Rig(lab.RigOptions{Name: lab.UniqueName("bench")}))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	p, err := plan(seedGroups(neverReached), c.in)
	if err != nil {
		return err
	}
	pairs, each := pairing(r.Quick)
	names := []string{noneName, bench.Ours, htbName}
	rates := map[string][]float64{}
	for i := range pairs {
		for k := range names {
			name := names[(i+k)%len(names)] // each comes first equally often
			limiter, err := newLimiter(name)
			if err != nil {
				return err
			}
			if err := within(l, func() error { return limiter.Apply(p) }); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			from, to := ends(c.in)
			rate, err := blast(ctx, l, from, to, each)
			if err := errors.Join(err, within(l, func() error { return limiter.Clear(dev) })); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			rates[name] = append(rates[name], rate/1e9)
		}
	}
	bars := &plot.Bars{}
	for _, name := range names {
		var parts []float64
		for i, v := range rates[name] {
			parts = append(parts, 100*v/rates[noneName][i])
		}
		sheet := r.Sheet(name)
		sheet.Keep("gbit_per_s", rates[name])
		if name != noneName {
			sheet.SetAll(c.id(), parts)
			sheet.Note(c.id(), "median %s Gbit/s, without a limiter %s", bench.Number(bench.Median(rates[name])), bench.Number(bench.Median(rates[noneName])))
		}
		bars.Sets = append(bars.Sets, plot.BarSet{Name: name, Values: rates[name]})
	}
	for i := range pairs {
		bars.Groups = append(bars.Groups, fmt.Sprint(i+1))
	}
	r.Plot(plot.Plot{
		File: file(c.id()), Row: "cost", Title: "One TCP connection under a limit that is not reached, " + direction(c.in), X: "round", Y: "goodput (Gbit/s)",
		Caption: "Measured in turn, so that disturbances affect all.", Bars: bars,
	})
	return nil
}

// blast sends one TCP connection's data as fast as possible, and returns the goodput after a fifth of
// the time.
func blast(ctx context.Context, l *lab.Lab, from, to string, length time.Duration) (rate float64, err error) {
	sender, receiver, err := connect(l, from, to)
	if err != nil {
		return 0, err
	}
	var received atomic.Int64
	var both sync.WaitGroup
	both.Go(func() {
		buf := make([]byte, 256<<10)
		for {
			n, err := receiver.Read(buf)
			received.Add(int64(n))
			if err != nil {
				return
			}
		}
	})
	both.Go(func() {
		buf := make([]byte, 256<<10)
		for {
			if _, err := sender.Write(buf); err != nil {
				return
			}
		}
	})
	warm := bench.Sleep(ctx, length/5)
	began, before := time.Now(), received.Load()
	err = errors.Join(warm, bench.Sleep(ctx, length-length/5))
	rate = float64(received.Load()-before) * 8 / time.Since(began).Seconds()
	sender.Close()
	receiver.Close()
	both.Wait()
	return rate, err
}

// connect opens a TCP connection between two nodes, for the last group.
func connect(l *lab.Lab, from, to string) (sender, receiver *net.TCPConn, err error) {
	return connectTo(l, from, to, basePort+uint16(len(seedShares))-1)
}

func connectTo(l *lab.Lab, from, to string, port uint16) (sender, receiver *net.TCPConn, err error) {
	addr, err := l.Node(to).Addr(false)
	if err != nil {
		return nil, nil, err
	}
	at := netip.AddrPortFrom(addr, port)
	var listener *net.TCPListener
	err = l.Node(to).Do(func() error {
		listener, err = net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(at))
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	defer listener.Close()
	err = l.Node(from).Do(func() error {
		d := net.Dialer{FallbackDelay: -1, Timeout: 5 * time.Second, Control: cubic}
		conn, err := d.Dial("tcp4", at.String())
		if err == nil {
			sender = conn.(*net.TCPConn)
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if receiver, err = listener.AcceptTCP(); err != nil {
		sender.Close()
		return nil, nil, err
	}
	// Queued data at the end is discarded.
	return sender, receiver, errors.Join(sender.SetLinger(0), receiver.SetLinger(0))
}

func cubic(_, _ string, c syscall.RawConn) (err error) {
	if e := c.Control(func(fd uintptr) {
		err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "cubic")
	}); e != nil {
		return e
	}
	return err
}

func throughputBenches() (out []bench.Case) {
	for _, in := range []bool{false, true} {
		c := throughputCase{in}
		out = append(out, bench.Case{
			Name: c.id(), Claims: []bench.Claim{c.claim()}, Run: c.run,
			Takes: func(quick bool) time.Duration {
				pairs, each := pairing(quick)
				return time.Duration(3*pairs) * (each + 100*time.Millisecond)
			},
		})
	}
	return out
}
