package collective

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"headgate/bench"
	"headgate/internal/bpfobj"
	"headgate/lab"
	"headgate/lab/traffic"
	"headgate/unit"
)

// costCases are what the programs and the daemon take of a core.
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
	return []bench.Case{
		costCase("cost/8-flows", 10*unit.Gbit, 0, flows(8, traffic.Unlimited), costFlows),
		costCase("cost/10000-connections", 0, 9_900, flows(100, unit.Mbit), costIdle),
	}
}

// connectIdle opens connections that nobody accepts, so that they take a file each, and
// sends nothing over them.
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

func costCase(id string, rate unit.Rate, idle int, flows []traffic.Flow, aim bench.Target) bench.Case {
	const settle = 3 * time.Second
	lengthOf := func(quick bool) time.Duration {
		if quick {
			return 6 * time.Second
		}
		return 20 * time.Second
	}
	return bench.Case{
		Name: id,
		Claims: []bench.Claim{
			bench.NewClaim(id, "eBPF and daemon", aim),
			bench.NewClaim(id+"/daemon", "the daemon's part", measuredPercent),
			bench.NewClaim(id+"/carried", "all of them", measuredOnly),
		},
		Takes: func(quick bool) time.Duration { return settle + lengthOf(quick) + 3*time.Second },
		Run: func(ctx context.Context, r *bench.Run) (err error) {
			length := lengthOf(r.Quick)
			l, err := lab.Up(ctx, &lab.Topology{
				Name:  lab.UniqueName("bench"),
				Nodes: []lab.NodeSpec{{Name: "client"}, {Name: "router", Router: true}, {Name: "server", Sysctl: map[string]string{"net.core.somaxconn": "16384"}}},
				Links: []lab.LinkSpec{
					{Ends: [2]string{"client", "router"}},
					{Ends: [2]string{"router", "server"}, Forward: lab.Limited(rate)},
				},
			})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, l.Close()) }()
			from, err := l.Node("client").Addr(false)
			if err != nil {
				return err
			}
			from6, err := l.Node("client").Addr(true)
			if err != nil {
				return err
			}
			d, err := watchEvery(ctx, seldom, set{name: "all", law: ours, rules: []string{"src: " + from.String(), fmt.Sprintf("src: %q", from6)}})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, d.end()) }()
			end, err := connectIdle(l, idle)
			if err != nil {
				return err
			}
			defer end()
			stats, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
			if err != nil {
				return fmt.Errorf("switch the kernel's eBPF statistics on: %w", err)
			}
			defer stats.Close()
			s, err := traffic.Start(ctx, l.Host, flows, traffic.Options{Duration: settle + length + time.Second})
			if err != nil {
				return err
			}
			defer func() { s.Stop(); s.Wait() }()
			time.Sleep(settle)
			before, err := d.spent()
			if err != nil {
				return err
			}
			time.Sleep(length)
			after, err := d.spent()
			if err != nil {
				return err
			}
			got := s.Wait()
			carried := 0.0
			for _, f := range got.Flows {
				carried += f.Total.DeliveredRate()
			}
			percent := func(v time.Duration) float64 { return 100 * v.Seconds() / length.Seconds() }
			sheet := r.Sheet(ours)
			sheet.Set(id, percent(after.daemon-before.daemon+after.programs-before.programs))
			sheet.Set(id+"/daemon", percent(after.daemon-before.daemon))
			sheet.Set(id+"/carried", carried/1e6)
			sheet.Note(id, "eBPF ran %d times", after.runs-before.runs)
			return nil
		},
	}
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
	// Fields 14 and 15 of proc(5), the 12th and 13th after the name's bracket.
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
	l, err := link.LoadPinnedLink(pin, nil)
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

// onlySet is the pin of the one set that a daemon watches in a case of cost; what is after
// "set-" is the daemon's.
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
	return "", fmt.Errorf("one set is watched, but %s has %d pins named set-*: %s", dir, len(pins), strings.Join(names, ", "))
}
