package switching

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"headgate.dev/headgate/lab"
)

// hops are the ring. The i-th hop's port is basePort+i.
var hops = [...][2]string{{"vm1", "vm2"}, {"vm2", "pm"}, {"pm", "vm1"}}

const basePort = 5001

// datagram is what the thesis's iperf3 sends: its received rates at 5 Mbit/s are 4.98 and 5.05, which
// is 76 and 77 datagrams of 8 KiB a second.
const datagram = 8192

// ring is three iperf3 in parallel.
type ring struct {
	mbit    float64 // each hop's rate as payload, over UDP; 0 is one CUBIC connection without limit
	seconds int
	addr    func(from, to string) (netip.Addr, error)
	pids    []int // of the switch's own programs
}

// confirmed is the received rate of each second, in Mbit/s of payload, by hop, and the processor time:
// the total, and the mean of the switch's own programs.
type confirmed struct {
	mbit [len(hops)][]float64
	busy []float64
	own  float64
}

// attempts is how often a ring that blocks is restarted: iperf3's own control connection passes the
// switch that the ring overloads (Open vSwitch at 1000 Mbit/s: one run of five).
const attempts = 3

// run measures the ring once.
func (r ring) run(ctx context.Context, l *lab.Lab) (c confirmed, err error) {
	for range attempts {
		// iperf3 exits by itself; a blocked one is killed by this.
		bounded, cancel := context.WithTimeout(ctx, time.Duration(r.seconds)*time.Second+20*time.Second)
		c, err = r.attempt(bounded, l)
		hung := bounded.Err() != nil
		cancel()
		if err == nil || !hung || ctx.Err() != nil {
			break
		}
	}
	return c, err
}

func (r ring) attempt(ctx context.Context, l *lab.Lab) (c confirmed, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var receivers [len(hops)]*receiver
	defer func() {
		cancel()
		for _, s := range receivers {
			if s != nil {
				s.Wait()
			}
		}
	}()
	softirq, err := softirqThreads()
	if err != nil {
		return c, err
	}
	var everything, own clock
	own.watch(r.pids...)
	everything.watch(append(softirq, r.pids...)...)
	for i, hop := range hops {
		if receivers[i], err = receive(ctx, l.Node(hop[1]), basePort+i); err != nil {
			return c, err
		}
		everything.watch(receivers[i].Process.Pid)
	}
	own.zero()
	everything.zero()
	var all sync.WaitGroup
	errs := make([]error, len(hops)+1)
	all.Go(func() { c.busy, errs[len(hops)] = everything.each(ctx, r.seconds) })
	for i, hop := range hops {
		all.Go(func() { errs[i] = r.send(ctx, l.Node(hop[0]), hop, basePort+i, &everything) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return c, err
	}
	c.own = 100 * own.total().Seconds() / float64(r.seconds)
	for i, hop := range hops {
		if c.mbit[i], err = receivers[i].each(); err != nil {
			return c, fmt.Errorf("%s to %s: %w", hop[0], hop[1], err)
		}
		receivers[i] = nil
	}
	return c, nil
}

// receiver is an iperf3 that serves once and reports what it received.
type receiver struct {
	*lab.Cmd
	said, wrong bytes.Buffer
}

func receive(ctx context.Context, at *lab.Node, port int) (*receiver, error) {
	r := &receiver{Cmd: at.Command(ctx, "iperf3", "-s", "-1", "-J", "-p", fmt.Sprint(port))}
	r.Stdout, r.Stderr = &r.said, &r.wrong
	if err := r.Start(); err != nil {
		return nil, fmt.Errorf("cannot start iperf3 (install the package iperf3): %w", err)
	}
	for until := time.Now().Add(5 * time.Second); !listens(r.Process.Pid, port); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(until) || ctx.Err() != nil {
			_ = r.Process.Kill()
			return nil, errors.Join(fmt.Errorf("iperf3 does not listen on port %d: %s", port, &r.wrong), r.Wait(), ctx.Err())
		}
	}
	return r, nil
}

// listens reports whether a TCP socket listens on a port in a process's namespace.
func listens(pid, port int) bool {
	for _, family := range []string{"tcp", "tcp6"} {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, family))
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line) // sl local_address rem_address st
			if len(f) > 3 && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) && f[3] == "0A" {
				return true
			}
		}
	}
	return false
}

// each waits for the end, and returns the received rate of each second.
func (r *receiver) each() ([]float64, error) {
	if err := r.Wait(); err != nil {
		return nil, fmt.Errorf("iperf3: %w: %s", err, &r.wrong)
	}
	return secondsOf(r.said.Bytes())
}

// secondsOf parses iperf3's JSON: the rates of its intervals, without an incomplete last one.
func secondsOf(report []byte) (mbit []float64, err error) {
	var r struct {
		Error     string
		Intervals []struct {
			Sum struct {
				Seconds float64
				Bps     float64 `json:"bits_per_second"`
			}
		}
	}
	if err := json.Unmarshal(report, &r); err != nil {
		return nil, fmt.Errorf("cannot parse iperf3's output: %w", err)
	}
	if r.Error != "" {
		return nil, errors.New("iperf3: " + r.Error)
	}
	for _, iv := range r.Intervals {
		if iv.Sum.Seconds > 0.5 {
			mbit = append(mbit, iv.Sum.Bps/1e6)
		}
	}
	if len(mbit) == 0 {
		return nil, errors.New("iperf3 reports no interval")
	}
	return mbit, nil
}

// send runs iperf3 on one hop, with its processor time counted.
func (r ring) send(ctx context.Context, from *lab.Node, hop [2]string, port int, on *clock) error {
	addr, err := r.addr(hop[0], hop[1])
	if err != nil {
		return err
	}
	args := []string{"-c", addr.String(), "-p", fmt.Sprint(port), "-t", fmt.Sprint(r.seconds), "-J"}
	if r.mbit > 0 {
		args = append(args, "-u", "-b", fmt.Sprintf("%.0f", r.mbit*1e6), "-l", fmt.Sprint(datagram))
	} else {
		args = append(args, "-C", "cubic")
	}
	var out bytes.Buffer
	cmd := from.Command(ctx, "iperf3", args...)
	cmd.Stdout = &out
	err = cmd.Start()
	if err == nil {
		on.watch(cmd.Process.Pid)
		err = cmd.Wait()
	}
	if err != nil {
		var said struct{ Error string }
		_ = json.Unmarshal(out.Bytes(), &said)
		return fmt.Errorf("iperf3 from %s to %s: %w: %s", hop[0], hop[1], err, said.Error)
	}
	return nil
}
