package collective

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	kernel "github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/internal/bpfobj"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// cost is how much of a core the eBPF programs and the daemon use while the flows of one set send:
//
//	client ── router ── path ── server
type cost struct {
	id    string
	path  lab.LinkSpec // without its ends
	idle  int          // idle connections of the set
	flows []traffic.Flow
	aim   bench.Target
	// byHand: connections over IPv4 have weight two, those over IPv6 weight one.
	byHand bool
	settle time.Duration
}

func costCases() []bench.Case {
	flows := func(n int, rate unit.Rate) (out []traffic.Flow) {
		for i := range n {
			out = append(out, traffic.Flow{
				Name: fmt.Sprint("f", i), From: "client", To: "server", Protocol: traffic.TCP, Congestion: "cubic",
				IPv6: i%2 == 1, Schedule: traffic.Constant(rate),
			})
		}
		return out
	}
	const settle = 3 * time.Second
	sending := lab.LinkSpec{
		Backend: lab.Emulator, Forward: lab.Path{Spec: link.Spec{Rate: 500 * unit.Mbit, Delay: 10 * time.Millisecond, Queue: link.Amount{Time: 20 * time.Millisecond}}},
		Back: lab.Path{Spec: link.Spec{Delay: 10 * time.Millisecond}},
	}
	return []bench.Case{
		cost{id: "cost/8-flows", path: lab.LinkSpec{Forward: lab.Limited(10 * unit.Gbit)}, flows: flows(8, traffic.Unlimited), aim: costFlows, settle: settle}.bench(),
		cost{id: "cost/10000-connections", idle: 9_900, flows: flows(100, unit.Mbit), aim: costIdle, settle: settle}.bench(),
		unsmoked(cost{id: "cost/1000-sending", path: sending, flows: flows(1000, traffic.Unlimited), aim: measuredCost, byHand: true, settle: 10 * time.Second}.bench()),
	}
}

// connectIdle opens connections that are not accepted, so that they take one file each, and sends
// nothing over them.
func connectIdle(l *lab.Lab, n int) (end func(), err error) {
	to, err := l.Node("server").Addr(false)
	if err != nil {
		return nil, err
	}
	var files []int
	end = func() {
		for _, f := range files {
			unix.Close(f)
		}
	}
	const port = 9000
	open := func(use func(int) error) func() error {
		return func() error {
			f, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			files = append(files, f)
			return use(f)
		}
	}
	at := &unix.SockaddrInet4{Port: port, Addr: to.As4()}
	err = l.Node("server").Do(open(func(f int) error { return errors.Join(unix.Bind(f, at), unix.Listen(f, n)) }))
	for i := 0; i < n && err == nil; i++ {
		err = l.Node("client").Do(open(func(f int) error { return unix.Connect(f, at) }))
	}
	if err != nil {
		end()
		return nil, fmt.Errorf("cannot open %d connections: %w", n, err)
	}
	return end, nil
}

func (c cost) length(quick bool) time.Duration {
	if quick {
		return 6 * time.Second
	}
	return 20 * time.Second
}

func (c cost) bench() bench.Case {
	claims := []bench.Claim{
		bench.NewClaim(c.id, "processor time of eBPF and daemon", c.aim),
		bench.NewClaim(c.id+"/daemon", "processor time of the daemon", measuredPercent),
		bench.NewClaim(c.id+"/carried", "rate of all connections", measuredOnly),
	}
	if c.byHand {
		claims = append(claims, bench.NewClaim(c.id+"/proportion", "rate of IPv4 to that of IPv6, deviation from 2:1", measuredPercent))
	}
	return bench.Case{
		Name: c.id, Claims: claims,
		Takes: func(quick bool) time.Duration { return c.settle + c.length(quick) + 3*time.Second },
		Run:   c.run,
	}
}

func (c cost) run(ctx context.Context, r *bench.Run) (err error) {
	path := c.path
	path.Ends = [2]string{"router", "server"}
	l, err := lab.Up(ctx, &lab.Topology{
		Name:  lab.UniqueName("bench"),
		Nodes: []lab.NodeSpec{{Name: "client"}, {Name: "router", Router: true}, {Name: "server", Sysctl: map[string]string{"net.core.somaxconn": "16384"}}},
		Links: []lab.LinkSpec{{Ends: [2]string{"client", "router"}}, path},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	members, err := c.set(l)
	if err != nil {
		return err
	}
	d, err := watchEvery(ctx, seldom, members)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.end()) }()
	end, err := connectIdle(l, c.idle)
	if err != nil {
		return err
	}
	defer end()
	stats, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	if err != nil {
		return fmt.Errorf("cannot turn on the kernel's eBPF statistics: %w", err)
	}
	defer stats.Close()
	length := c.length(r.Quick)
	s, err := traffic.Start(ctx, l.Host, c.flows, traffic.Options{Duration: c.settle + length + time.Second, Interval: 500 * time.Millisecond})
	if err != nil {
		return err
	}
	defer func() { s.Stop(); s.Wait() }()
	time.Sleep(c.settle)
	before, err := d.spent()
	if err != nil {
		return err
	}
	time.Sleep(length)
	after, err := d.spent()
	if err != nil {
		return err
	}
	var carried [2]float64 // of IPv4 and of IPv6
	for i, f := range s.Wait().Flows {
		iv := f.Between(c.settle, c.settle+length)
		carried[i%2] += float64(iv.DeliveredBytes) * 8 / iv.Seconds
	}
	percent := func(v time.Duration) float64 { return 100 * v.Seconds() / length.Seconds() }
	sheet := r.Sheet(ours)
	sheet.Set(c.id, percent(after.daemon-before.daemon+after.programs-before.programs))
	sheet.Set(c.id+"/daemon", percent(after.daemon-before.daemon))
	sheet.Set(c.id+"/carried", (carried[0]+carried[1])/1e6)
	if c.byHand {
		sheet.Set(c.id+"/proportion", 100*math.Abs(carried[0]/carried[1]/2-1))
	}
	sheet.Note(c.id, "eBPF ran %d times", after.runs-before.runs)
	return nil
}

// set returns all ports from which the client sends.
func (c cost) set(l *lab.Lab) (set, error) {
	from, err := l.Node("client").Addr(false)
	if err != nil {
		return set{}, err
	}
	from6, err := l.Node("client").Addr(true)
	if err != nil {
		return set{}, err
	}
	rules := []string{"src: " + from.String(), fmt.Sprintf("src: %q", from6)}
	if c.byHand {
		rules[0], rules[1] = rules[0]+", weight: 2", rules[1]+", weight: 1"
	}
	return set{name: "all", scaleControl: ours, rules: rules}, nil
}

// spent is processor time.
type spent struct {
	daemon, programs time.Duration
	runs             uint64
}

func (d *daemon) spent() (out spent, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", d.cmd.Process.Pid))
	if err != nil {
		return out, err
	}
	// Fields 14 and 15 of proc(5) are the 12th and 13th after the closing parenthesis of the name.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	for _, f := range fields[11:13] {
		ticks, err := strconv.Atoi(f)
		if err != nil {
			return out, err
		}
		out.daemon += time.Duration(ticks) * 10 * time.Millisecond
	}
	dir, err := bpfobj.PinDir(filepath.Join("headgate", "collective", d.instance))
	if err != nil {
		return out, err
	}
	pin, err := onlySet(dir)
	if err != nil {
		return out, err
	}
	l, err := kernel.LoadPinnedLink(pin, nil)
	if err != nil {
		return out, err
	}
	defer l.Close()
	info, err := l.Info()
	if err != nil {
		return out, err
	}
	p, err := ebpf.NewProgramFromID(info.Program)
	if err != nil {
		return out, err
	}
	defer p.Close()
	ran, err := p.Stats()
	if err != nil {
		return out, err
	}
	out.programs, out.runs = ran.Runtime, ran.RunCount
	return out, nil
}

// onlySet returns the pin of the only set of a daemon; the daemon chooses the text after "set-".
func onlySet(dir string) (string, error) {
	pins, err := filepath.Glob(filepath.Join(dir, "set-*"))
	if err != nil {
		return "", err
	}
	if len(pins) == 1 {
		return pins[0], nil
	}
	there, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var names []string
	for _, e := range there {
		names = append(names, e.Name())
	}
	return "", fmt.Errorf("want one set, but %s has %d pins named set-*: %s", dir, len(pins), strings.Join(names, ", "))
}
