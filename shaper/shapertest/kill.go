package shapertest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"headgate/group"
	"headgate/lab/traffic"
	"headgate/shaper"
	"headgate/unit"
)

// withoutProcess lets another process apply a plan and end.
func withoutProcess(s *suite) {
	const limit = 10 * unit.Mbit
	p := hostPlan(four(s, limit), four(s, limit))
	c := command(s, "apply", &p)
	s.do(c.Start)
	if err := c.Wait(); err != nil {
		s.Fatalf("apply in another process: %v: %v", err, c.Stderr)
	}
	if st := s.observe(); !st.Plan.Equal(p) || len(st.Drift) > 0 {
		s.Errorf("observed %+v, drift%s", st.Plan, texts(st.Drift))
	}
	both(s, func(s *suite, in bool) {
		r, err := traffic.Run(s.Context(), s.lab.Host, flood(limit, in), traffic.Options{Duration: 3 * time.Second})
		if err != nil {
			s.Fatal(err)
		}
		var total float64
		for _, f := range r.Flows {
			total += f.Between(time.Second, 3*time.Second).DeliveredRate()
		}
		// 16 Mbit/s are offered. The engine is there or it is not: 15 %.
		if total < 0.85*float64(limit) || total > 1.15*float64(limit) {
			s.Errorf("%.2f Mbit/s arrive, of a limit of %v", total/1e6, limit)
		}
	})
}

// plans are two that differ in every way.
func plans(s *suite) (a, b shaper.Plan) {
	a = hostPlan(four(s, 100*unit.Mbit), four(s, 50*unit.Mbit))
	b = hostPlan(resolve(s, 80*unit.Mbit, percent("g1", 30, 5001), percent("new", 10, 7000), percent("g3", 30, 5003)),
		resolve(s, 40*unit.Mbit, percent("g4", 50, 5004), percent("new", 10, 7000)))
	return a, b
}

// killedAtSteps kills a process before each of its steps: at its system calls that
// change something, one after the other. What is then enforced is all of the old
// or all of the new, and the next Apply or Clear makes it right.
func killedAtSteps(s *suite) {
	a, b := plans(s)
	pristine := snapshot(s, s.server, dev)
	for _, c := range []struct {
		name     string
		task     string
		old, new *shaper.Plan
	}{
		{"the first apply", "apply", nil, &a},
		{"a change", "apply", &a, &b},
		{"a direction less", "apply", &a, ptr(hostPlan(a.Out, nil))},
		{"clear", "clear", &a, nil},
	} {
		var was, will string // what is enforced, before and after
		start := func() *exec.Cmd {
			s.clear()
			if c.old != nil {
				s.apply(*c.old)
			}
			was = s.enforced()
			if c.task == "clear" {
				return command(s, "clear", nil)
			}
			return command(s, "apply", c.new)
		}
		steps := s.trace(start(), point{step: -1})
		will = s.enforced()
		if problem := s.isOneOf(was, will, nil, c.new); problem != "" {
			s.Fatalf("%s, not killed: %s", c.name, problem)
		}
		points := edges(steps)
		s.Logf("%s: %d system calls that change something; killed at %d points", c.name, len(steps), len(points))
		var old, fresh int
		for _, at := range points {
			s.trace(start(), at)
			what := fmt.Sprintf("%s, killed at %v of %d (%s)", c.name, at, len(steps), steps[at.step])
			if problem := s.isOneOf(was, will, c.old, c.new); problem != "" {
				s.Errorf("%s: %s", what, problem)
			}
			if s.isOneOf(was, will, c.old) == "" {
				old++
			} else {
				fresh++
			}
			if c.new != nil {
				s.apply(*c.new)
				if problem := s.isOneOf("", will, c.new); problem != "" {
					s.Errorf("%s, then applied: %s", what, problem)
				}
			}
			s.clear()
			if after := snapshot(s, s.server, dev); after != pristine {
				s.Fatalf("%s, then cleared: before:\n%s\nafter:\n%s", what, pristine, after)
			}
		}
		if old == 0 || fresh == 0 {
			s.Errorf("%s: %d kills left the old state and %d the new: this test proves too little", c.name, old, fresh)
		}
	}
}

func ptr[T any](v T) *T { return &v }

// point is just before or just after a step.
type point struct {
	step  int
	after bool
}

func (p point) String() string {
	if p.after {
		return fmt.Sprintf("the end of step %d", p.step)
	}
	return fmt.Sprintf("the beginning of step %d", p.step)
}

// edges are the points around what is not repeated, and some between.
func edges(steps []string) (out []point) {
	for i, s := range steps {
		first, last := i == 0 || s != steps[i-1], i == len(steps)-1 || s != steps[i+1]
		if first || i%16 == 0 {
			out = append(out, point{i, false})
		}
		if last {
			out = append(out, point{i, true})
		}
	}
	return out
}

// isOneOf says why what is in force is none of the plans. A nil plan is none at
// all. was and will are what was enforced before and what will be: an engine may
// write down the new plan first and then enforce it, as long as it says so (drift);
// and it may leave behind what is not used any more, as long as it says so too.
func (s *suite) isOneOf(was, will string, plans ...*shaper.Plan) (problem string) {
	s.Helper()
	var st shaper.State
	err := s.server.Do(func() (err error) { st, err = s.engine.Observe(dev); return err })
	none := errors.Is(err, shaper.ErrNotShaped)
	if err != nil && !none {
		return fmt.Sprintf("cannot be observed: %v", err)
	}
	if !slices.ContainsFunc(plans, func(p *shaper.Plan) bool { return p == nil && none || p != nil && !none && st.Plan.Equal(*p) }) {
		return fmt.Sprintf("in force is %+v", st.Plan)
	}
	now := s.enforced()
	left := slices.DeleteFunc(slices.Clone(st.Drift), func(c shaper.Change) bool { return c.Verb == "remove" })
	if len(left) > 0 && now != was || now != was && now != will {
		return fmt.Sprintf("only a part is enforced:\n%s\nmissing:%s\nbefore:\n%s\nafter:\n%s", now, texts(st.Drift), was, will)
	}
	return ""
}

// enforced is the traffic control that the device's packets meet, without what is
// another each time it is made.
func (s *suite) enforced() string {
	s.Helper()
	all := snapshot(s, s.server, dev)
	var other []string // a device that the ingress hook sends to
	for _, name := range redirects.FindAllString(all, -1) {
		if strings.Contains(all, "filter protocol all pref 1 bpf chain 0") && strings.Contains(ingressOf(all), "headgate") {
			other = append(other, name)
		}
	}
	slices.Sort(other)
	tcs, _, _ := strings.Cut(snapshot(s, s.server, append([]string{dev}, slices.Compact(other)...)...), "$ ip -d link")
	var keep []string
	for line := range strings.Lines(tcs) {
		if name := redirects.FindString(line); name == "" || slices.Contains(other, name) {
			keep = append(keep, line)
		}
	}
	slices.Sort(keep)
	return programs.ReplaceAllString(strings.Join(keep, ""), "")
}

func ingressOf(snapshot string) string {
	_, after, _ := strings.Cut(snapshot, dev+" ingress\n")
	text, _, _ := strings.Cut(after, "$ ")
	return text
}

var (
	redirects = regexp.MustCompile(`hgi\d+`)
	programs  = regexp.MustCompile(` (id|load_time|btf_id) \d+`)
)

// killedAnyTime kills a process that applies a large plan at random times.
func killedAnyTime(s *suite) {
	tree := func(n int, limit unit.Rate) *group.Tree {
		var groups []group.Group
		for i := range n {
			g := percent(fmt.Sprintf("g%d", i), 0, uint16(10000+i))
			g.Guarantee = group.Amount{Rate: limit / unit.Rate(n)}
			groups = append(groups, g)
		}
		return resolve(s, limit, groups...)
	}
	a := hostPlan(tree(s.f.Groups, unit.Gbit), tree(s.f.Groups, unit.Gbit))
	b := hostPlan(tree(s.f.Groups-1, 900*unit.Mbit), tree(s.f.Groups, 800*unit.Mbit))
	pristine := snapshot(s, s.server, dev)
	s.apply(a)
	run := func(p *shaper.Plan, within time.Duration) (took time.Duration, killed bool) {
		c := command(s, "apply", p)
		s.do(c.Start)
		begun := time.Now()
		if within > 0 {
			time.Sleep(within)
			_ = c.Process.Kill()
		}
		err := c.Wait()
		var exit *exec.ExitError
		if err != nil && !(errors.As(err, &exit) && exit.ExitCode() < 0) {
			s.Fatalf("apply: %v: %v", err, c.Stderr)
		}
		return time.Since(begun), err != nil
	}
	was := s.enforced()
	longest, _ := run(&b, 0)
	old, next := &b, &a
	is, will := s.enforced(), was
	kills := 0
	for range 25 {
		within := max(time.Duration(rand.Int64N(int64(longest))), time.Millisecond)
		if _, killed := run(next, within); killed {
			kills++
		}
		if problem := s.isOneOf(is, will, old, next); problem != "" {
			s.Fatalf("killed after %v: %s", within, problem)
		}
		s.apply(*next)
		if problem := s.isOneOf("", will, next); problem != "" {
			s.Fatalf("killed after %v, then applied: %s", within, problem)
		}
		old, next, is, will = next, old, will, is
	}
	s.Logf("applying %d groups takes %v; killed %d times", 2*s.f.Groups, longest, kills)
	if kills < 5 {
		s.Errorf("only %d of 25 processes were killed in time: this test proves too little", kills)
	}
	s.clear()
	if after := snapshot(s, s.server, dev); after != pristine {
		s.Errorf("before:\n%s\nafter:\n%s", pristine, after)
	}
}

// changing are the system calls by which a process changes something outside it,
// and the commands of bpf among them.
var changing = map[uint64]string{
	unix.SYS_BPF: "bpf", unix.SYS_SENDMSG: "sendmsg", unix.SYS_SENDTO: "sendto", unix.SYS_MKDIRAT: "mkdirat",
	unix.SYS_UNLINKAT: "unlinkat", unix.SYS_FLOCK: "flock", unix.SYS_MOUNT: "mount", unix.SYS_IOCTL: "ioctl",
}

var changingBPF = map[uint64]string{
	unix.BPF_MAP_CREATE: "make a map", unix.BPF_MAP_UPDATE_ELEM: "write to a map", unix.BPF_MAP_DELETE_ELEM: "delete from a map",
	unix.BPF_MAP_UPDATE_BATCH: "write to a map", unix.BPF_PROG_LOAD: "load a program", unix.BPF_OBJ_PIN: "pin",
	unix.BPF_LINK_CREATE: "make a link", unix.BPF_RAW_TRACEPOINT_OPEN: "make a link", unix.BPF_PROG_BIND_MAP: "bind the record",
}

// syscallInfo is struct ptrace_syscall_info at a system call's entry
// (uapi/linux/ptrace.h).
type syscallInfo struct {
	Op      uint8
	_       [3]uint8
	Arch    uint32
	IP, SP  uint64
	Number  uint64
	Args    [6]uint64
	RetData uint32
	_       uint32
}

const (
	ptraceGetSyscallInfo = 0x420e
	syscallEntry         = 1
	sysgood              = 0x80
)

// trace runs a child in the server's namespace and gives the steps of its first
// thread, which is the one that works. It kills the child at a point; at step -1
// it lets it end.
func (s *suite) trace(c *exec.Cmd, at point) (steps []string) {
	s.Helper()
	// Only the thread that started the child may trace it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	s.do(c.Start)
	pid := c.Process.Pid
	defer func() { _ = c.Wait() }() // it is reaped below; this frees what Start opened
	wait := func() (ws syscall.WaitStatus) {
		for {
			_, err := syscall.Wait4(pid, &ws, syscall.WALL, nil)
			if err == nil {
				return ws
			}
			if err != syscall.EINTR {
				s.Fatalf("wait for the child: %v", err)
			}
		}
	}
	if ws := wait(); !ws.Stopped() {
		s.Fatalf("the child does not stop to be traced: %v", ws)
	}
	if err := syscall.PtraceSetOptions(pid, unix.PTRACE_O_TRACESYSGOOD|unix.PTRACE_O_EXITKILL); err != nil {
		s.Fatalf("trace the child: %v", err)
	}
	inStep := false // between the two stops of a step
	for signal := 0; ; {
		if err := syscall.PtraceSyscall(pid, signal); err != nil && err != syscall.ESRCH {
			s.Fatalf("trace the child: %v", err)
		}
		ws := wait()
		signal = 0
		switch {
		case ws.Exited() && ws.ExitStatus() == 0:
			return steps
		case ws.Exited() || ws.Signaled():
			s.Fatalf("the child ended with %v: %v", ws, c.Stderr)
		case ws.StopSignal() != syscall.SIGTRAP|sysgood:
			if ws.StopSignal() != syscall.SIGTRAP {
				signal = int(ws.StopSignal())
			}
			continue
		}
		step := s.stepOf(pid)
		ends := inStep && step == ""
		if step != "" {
			steps = append(steps, step)
		}
		inStep = step != ""
		if n := len(steps) - 1; n == at.step && n >= 0 && (inStep && !at.after || ends && at.after) {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				s.Fatalf("kill the child: %v", err)
			}
			for ws = wait(); !ws.Signaled() && !ws.Exited(); ws = wait() {
			}
			return steps
		}
	}
}

// stepOf says what the system call is that a stopped child is about to enter, and
// "" if it is none that changes something, or has come to its end.
func (s *suite) stepOf(pid int) string {
	var info syscallInfo
	_, _, e := syscall.Syscall6(syscall.SYS_PTRACE, ptraceGetSyscallInfo, uintptr(pid), unsafe.Sizeof(info), uintptr(unsafe.Pointer(&info)), 0, 0)
	if e != 0 {
		s.Fatalf("trace the child: %v", e)
	}
	switch {
	case info.Op != syscallEntry:
		return ""
	case info.Number == unix.SYS_BPF:
		return changingBPF[info.Args[0]]
	}
	return changing[info.Number]
}
