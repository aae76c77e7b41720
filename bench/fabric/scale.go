package fabric

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/bench/controllers"
	"headgate.dev/headgate/bench/inmemory"
	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/traffic"
)

// large is the network of the row. A link is a direction of a cable.
func large(quick bool) inmemory.Network {
	m := inmemory.Network{Switches: 1000, Cables: 1500, Hosts: 10_000, Seed: 1}
	if quick {
		m = inmemory.Network{Switches: 100, Cables: 150, Hosts: 1000, Seed: 1}
	}
	m.Controllers = []string{"127.0.0.1:" + controllers.OpenFlowPort}
	return m
}

func scaleCases() []bench.Case {
	return []bench.Case{{
		Name: "scale", Takes: bench.Takes(30*time.Second, 20*time.Minute), Run: scale,
		Claims: []bench.Claim{
			bench.NewClaim("scale/idle", "processor time of the controller and its etcd while nothing happens", idleCores),
			bench.NewClaim("scale/memory", "resident memory of the controller, without its etcd, while nothing happens", resident),
			bench.NewClaim("scale/resync", "from the first switch's connection to a controller that was restarted, when nothing had changed for 5 s, until it shows that all have what they should", resync),
			bench.NewClaim("scale/link/needless", "rules that a link's death changes though the next hop is the same, and next hops that differ without a change of rules", needless),
			bench.NewClaim("scale/link/done", "from the link's death until the last switch gets its last change", linkDone),
		},
	}}
}

func scale(ctx context.Context, r *bench.Run) (err error) {
	l, err := lab.Up(ctx, controllerAlone())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	return scaleAt(ctx, r, controllers.Alone(l.Node(controllerNode)))
}

// scaleAt measures all of the row in one network.
func scaleAt(ctx context.Context, r *bench.Run, at controllers.Seat) (err error) {
	spec := large(r.Quick)
	network := spec.Plan()
	want := expectedIn(network)
	if err := enoughMemory(spec); err != nil {
		return err
	}
	sheet, speed := r.Sheet(bench.Ours), bench.SortTime()
	p, err := controllers.Start(ctx, controllers.AcceptSwitches, at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	c := p.Controllers[0]
	o, err := inmemory.Start(at.Do)
	if err != nil {
		return err
	}
	defer o.Close()
	if _, err := o.Tell(inmemory.Order{Do: "start", Network: &spec}); err != nil {
		return err
	}
	first, err := settled(ctx, c, want, 0, time.Now(), bench.Pick(r.Quick, 2*time.Minute, 15*time.Minute))
	if err != nil {
		return fmt.Errorf("at the start: %w", err)
	}
	r.Say("connected after %v", first.Round(time.Millisecond))
	if err := announce(ctx, r, c, o, want, spec.Hosts); err != nil {
		return err
	}
	if err := errors.Join(bench.Sleep(ctx, bench.Pick(r.Quick, 2*time.Second, 10*time.Second)), idle(ctx, r, c, o)); err != nil {
		return err
	}
	if err := cutLink(ctx, r, network, o); err != nil {
		return err
	}
	if _, err := settled(ctx, c, want, spec.Hosts, time.Now(), time.Minute); err != nil {
		return fmt.Errorf("after the link is back: %w", err)
	}
	// Switches that have just changed are read in full.
	if err := bench.Sleep(ctx, 5*time.Second); err != nil {
		return err
	}
	if err := restart(ctx, sheet, c, o, want, spec.Hosts); err != nil {
		return err
	}
	o.Close()
	sheet.Note("scale/idle", "how fast the machine was: a million integers were sorted in %d ms before, and in %d ms after", speed.Milliseconds(), bench.SortTime().Milliseconds())
	return nil
}

// flowBytes is what is asked of the machine for a flow in a switch in memory (oftest): 550 to 750 bytes were measured, and the collector of garbage
// needs more.
const flowBytes = 1300

// enoughMemory refuses a network for whose flows the machine has no memory: each switch has one for each host, and three for each
// other switch.
func enoughMemory(m inmemory.Network) error {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return err
	}
	needs, has := float64(m.Switches*(m.Hosts+3*m.Switches)*flowBytes)/(1<<30), kilobytes(string(text), "MemAvailable:")/(1<<20)
	if needs > has {
		return fmt.Errorf("the flows of %d switches and %d hosts need %.0f GiB in the switches in memory, and this machine has %.0f free", m.Switches, m.Hosts, needs, has)
	}
	return nil
}

// announce lets all hosts announce themselves until they are known. A host's single frame may be lost: a switch drops packet-ins
// while a hundred wait.
func announce(ctx context.Context, r *bench.Run, c *controllers.Controller, o *inmemory.Process, want expected, hosts int) error {
	const most = 5
	var err error
	for n := 1; n <= most; n++ {
		if _, err := o.Tell(inmemory.Order{Do: "announce", Within: bench.Pick(r.Quick, 2*time.Second, 20*time.Second)}); err != nil {
			return err
		}
		var took time.Duration
		if took, err = settled(ctx, c, want, hosts, time.Now(), bench.Pick(r.Quick, 15*time.Second, 15*time.Minute)); err == nil {
			r.Say("all hosts known %v after the last of %d announcements", took.Round(time.Millisecond), n)
			r.Sheet(bench.Ours).Note("scale/idle", "the hosts announced themselves %d times until all were known", n)
			return nil
		}
	}
	return fmt.Errorf("with all hosts, which announced themselves %d times: %w", most, err)
}

// settled waits until the network is shown right, all switches have what they should, and so many hosts are known.
func settled(ctx context.Context, c *controllers.Controller, want expected, hosts int, began time.Time, limit time.Duration) (time.Duration, error) {
	var last error
	for {
		asked := time.Now()
		got, err := c.Show(ctx)
		took, showing := time.Since(began), time.Since(asked)
		switch {
		case err != nil:
			last = err
		case !got.Settled:
			last = fmt.Errorf("not all switches have what they should: %s", faultOf(got.Switches))
		case len(got.Hosts) < hosts:
			last = fmt.Errorf("%d of %d hosts are known", len(got.Hosts), hosts)
		default:
			wrong := want.differs(shownBy(got))
			if wrong == "" {
				return took, nil
			}
			last = errors.New(wrong)
		}
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if took > limit {
			return 0, fmt.Errorf("after %v: %w", limit, last)
		}
		// To show a thousand switches takes a third of a second of a processor, which they would lack.
		if err := bench.Sleep(ctx, max(100*time.Millisecond, took/30, showing)); err != nil {
			return 0, err
		}
	}
}

// faultOf returns the error of a switch, if one has an error.
func faultOf(all []api.NetworkSwitch) string {
	behind := 0
	for _, s := range all {
		if s.Error != nil {
			return *s.Error
		}
		if !s.Current {
			behind++
		}
	}
	return fmt.Sprintf("%d of %d", behind, len(all))
}

// idle measures what the controller uses while nothing happens.
func idle(ctx context.Context, r *bench.Run, c *controllers.Controller, o *inmemory.Process) error {
	before := o.Usage()
	children, _, _ := memoryOf(o.PID())
	lasts := bench.Pick(r.Quick, 4*time.Second, 30*time.Second)
	cores, err := c.Cores(func() error { return bench.Sleep(ctx, lasts) })
	if err != nil {
		return err
	}
	sheet := r.Sheet(bench.Ours)
	sheet.Set("scale/idle", cores)
	sheet.Note("scale/idle", "over %v; the switches in memory used %s cores, and have %s MiB", lasts, bench.Number((o.Usage()-before)/lasts.Seconds()), bench.Number(children))
	rss, peak, err := memoryOf(c.Process().Pid)
	if err != nil {
		return err
	}
	sheet.Set("scale/memory", rss)
	rest := 0.0
	for _, pid := range bench.Family(c.Process().Pid)[1:] {
		if n, _, err := memoryOf(pid); err == nil {
			rest += n
		}
	}
	sheet.Note("scale/memory", "its peak so far is %s MiB; its etcd has %s MiB", bench.Number(peak), bench.Number(rest))
	return nil
}

// memoryOf returns the resident memory of a process in MiB, and its peak (proc_pid_status(5)).
func memoryOf(pid int) (rss, peak float64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	rss, peak = kilobytes(string(text), "VmRSS:")/1024, kilobytes(string(text), "VmHWM:")/1024
	if rss == 0 {
		return 0, 0, fmt.Errorf("process %d has no memory", pid)
	}
	return rss, peak, nil
}

func kilobytes(text, name string) float64 {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == name {
			n, _ := strconv.ParseFloat(f[1], 64)
			return n
		}
	}
	return 0
}

// cutLink cuts a cable without which all switches are still connected, judges what changes, and puts it back.
func cutLink(ctx context.Context, r *bench.Run, p inmemory.Plan, o *inmemory.Process) error {
	before, err := p.Topology(-1)
	if err != nil {
		return err
	}
	cable := -1
	var after *fabric.Topology
	for n := len(p.Cables) / 2; n < len(p.Cables) && cable < 0; n++ {
		if after, err = p.Topology(n); err != nil {
			return err
		}
		if len(after.SpanningTree().Components) == 1 {
			cable = n
		}
	}
	if cable < 0 {
		return errors.New("every cable is needed")
	}
	known, err := o.Tell(inmemory.Order{Do: "labels"})
	if err != nil {
		return err
	}
	if err := bench.Sleep(ctx, 2*time.Second); err != nil { // reading the labels kept the switches busy
		return err
	}
	cut, err := o.Tell(inmemory.Order{Do: "cut", Cable: cable})
	if err != nil {
		return err
	}
	done, err := quiet(ctx, o, cut.At)
	if err != nil {
		return err
	}
	if _, err := o.Tell(inmemory.Order{Do: "join", Cable: cable}); err != nil {
		return err
	}
	m := newMinimal(before, after, [2]fabric.DPID{fabric.DPID(p.Cables[cable][0].ID()), fabric.DPID(p.Cables[cable][1].ID())}, known.Labels)
	extra, missing, err := m.judge(done.Mods)
	if err != nil {
		return err
	}
	sheet := r.Sheet(bench.Ours)
	sheet.Set("scale/link/done", float64(done.LastChange-cut.At)/1e9)
	sheet.Set("scale/link/needless", float64(len(extra)+len(missing)))
	touched := map[uint64]bool{}
	for _, one := range done.Mods {
		touched[one.Switch] = true
	}
	sheet.Note("scale/link/needless", "%d changes at %d switches; %d next hops differ; %d changes are needless, and %d are missing", len(done.Mods), len(touched), m.changes(), len(extra), len(missing))
	for _, one := range append(extra[:min(len(extra), 3)], missing[:min(len(missing), 3)]...) {
		sheet.Note("scale/link/needless", "%s", one)
	}
	return nil
}

// quiet waits until no change has come to the switches for 3 s, after one has.
func quiet(ctx context.Context, o *inmemory.Process, since int64) (inmemory.Report, error) {
	const pause = 3 * time.Second
	for limit := time.Now().Add(time.Minute); ; {
		if err := bench.Sleep(ctx, 500*time.Millisecond); err != nil {
			return inmemory.Report{}, err
		}
		r, err := o.Tell(inmemory.Order{Do: "look"})
		if err != nil {
			return r, err
		}
		if r.LastChange > since && traffic.MonotonicNow()-r.LastChange > int64(pause) {
			return r, nil
		}
		if time.Now().After(limit) {
			return r, errors.New("after a minute the switches have no change, or are still changed")
		}
	}
}

// restart restarts the controller, as a service manager does. What follows a kill is a case of the leader.
func restart(ctx context.Context, sheet *bench.Sheet, c *controllers.Controller, o *inmemory.Process, want expected, hosts int) error {
	if err := c.Stop(syscall.SIGTERM); err != nil {
		return err
	}
	if err := bench.Sleep(ctx, time.Second); err != nil { // all switches see the end of their channels
		return err
	}
	began := time.Now()
	start := traffic.MonotonicNow()
	if err := c.Start(); err != nil {
		return err
	}
	for { // until the term of a leader begins
		if _, err := c.Show(ctx); err == nil {
			break
		}
		if time.Since(began) > time.Minute {
			return errors.New("after a minute the restarted controller shows nothing")
		}
		if err := bench.Sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	led := time.Since(began)
	took, err := settled(ctx, c, want, hosts, began, 5*time.Minute)
	if err != nil {
		return fmt.Errorf("after the restart: %w", err)
	}
	r, err := o.Tell(inmemory.Order{Do: "look"})
	if err != nil {
		return err
	}
	if r.FirstOpen < start {
		return errors.New("the switches have not connected again")
	}
	listening := time.Duration(r.FirstOpen - start)
	sheet.Set("scale/resync", (took - listening).Seconds())
	sheet.Note("scale/resync", "from the start of the process: the first switch connected after %s s, the controller led after %s s, and all switches had what they should after %s s", bench.Number(listening.Seconds()), bench.Number(led.Seconds()), bench.Number(took.Seconds()))
	return nil
}
