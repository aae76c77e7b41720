package shapertest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// withoutProcess checks that a plan stays in force after the process that applied it has ended.
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
		// 16 Mbit/s are offered. The test only checks that the limit is enforced: 15 %.
		if total < 0.85*float64(limit) || total > 1.15*float64(limit) {
			s.Errorf("%.2f Mbit/s arrive, of a limit of %v", total/1e6, limit)
		}
	})
}

// plans returns two plans that differ in every respect.
func plans(s *suite) (a, b shaper.Plan) {
	a = hostPlan(four(s, 100*unit.Mbit), four(s, 50*unit.Mbit))
	b = hostPlan(resolve(s, 80*unit.Mbit, percent("g1", 30, 5001), percent("new", 10, 7000), percent("g3", 30, 5003)),
		resolve(s, 40*unit.Mbit, percent("g4", 50, 5004), percent("new", 10, 7000)))
	return a, b
}

// killedAtSteps kills a process before each of its steps: at the system calls that change
// something, one after the other. The enforced state must then be the complete old or the
// complete new one, and the next Apply or Clear must complete the work.
func killedAtSteps(s *suite) {
	a, b := plans(s)
	// The first apply creates the objects that all devices of the machine share, so they must
	// not exist before. For the other cases they stay in place, so these cases can run in
	// parallel.
	killedIn(s, killCase{"the first apply", "apply", nil, &a})
	for _, c := range []killCase{
		{"a change", "apply", &a, &b},
		{"one direction removed", "apply", &a, ptr(hostPlan(a.Out, nil))},
		{"clear", "clear", &a, nil},
	} {
		s.t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSuite(t, s.fresh, s.f)
			s.keepHook()
			killedIn(s, c)
		})
	}
}

// killCase is a task of another process, with the plans before and after.
type killCase struct {
	name     string
	task     string
	old, new *shaper.Plan
}

func killedIn(s *suite, c killCase) {
	pristine := snapshot(s, s.server, dev)
	var was, will string // the enforced state before and after
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
	steps, _ := s.trace(start(), nil)
	will = s.enforced()
	if problem := s.isOneOf(was, will, nil, c.new); problem != "" {
		s.Fatalf("%s, not killed: %s", c.name, problem)
	}
	points := edges(steps)
	s.Logf("%s: %d changing system calls; killed at %d points", c.name, len(steps), len(points))
	var old, fresh, missed int
	for _, at := range points {
		what := fmt.Sprintf("%s, killed at %v", c.name, at)
		if _, killed := s.trace(start(), &at); !killed {
			s.Logf("%s: the point was not reached this time", what)
			missed++
			continue
		}
		if problem := s.isOneOf(was, will, c.old, c.new); problem != "" {
			s.Errorf("%s: %s", what, problem)
		}
		s.passes(what)
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
			s.passes(what + ", then applied")
		}
		s.clear()
		if after := snapshot(s, s.server, dev); after != pristine {
			s.Fatalf("%s, then cleared: before:\n%s\nafter:\n%s", what, pristine, after)
		}
		s.passes(what + ", then cleared")
	}
	if old == 0 || fresh == 0 || 4*missed > len(points) {
		s.Errorf("%s: %d kills left the old state and %d the new, and %d points were missed: the test is not valid", c.name, old, fresh, missed)
	}
}

// keepHook also shapes a device of the router, so that objects that all devices of the machine
// share stay in place, whatever other processes do.
func (s *suite) keepHook() {
	s.Helper()
	p := hostPlan(four(s, unit.Gbit), nil)
	p.Dev = "server"
	if err := s.router.Do(func() error { _, err := s.engine.Apply(p); return err }); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if err := s.router.Do(func() error { return s.engine.Clear(p.Dev) }); err != nil {
			s.Error(err)
		}
	})
}

// passes sends a packet in each direction.
func (s *suite) passes(what string) {
	s.Helper()
	out, err := s.server.Command(s.Context(), "ping", "-q", "-c", "1", "-W", "2", "10.0.0.1").CombinedOutput()
	if err != nil {
		s.Errorf("%s: no packet passes: %v\n%s", what, err, out)
	}
}

func ptr[T any](v T) *T { return &v }

// step is a system call that changes something: what it does, in which run of equal steps, and
// its offset in the run. It has no number, because other processes of the machine may make a
// run longer or shorter.
type step struct {
	does        string
	run, offset int
}

// follows returns the step after others.
func follows(steps []step, does string) step {
	next := step{does: does}
	for i := len(steps) - 1; i >= 0; i-- {
		if steps[i].does != does {
			continue
		}
		// Netlink requests are few, and each is a run of its own.
		if i == len(steps)-1 && !strings.HasPrefix(does, netlinkStep) {
			return step{does, steps[i].run, steps[i].offset + 1}
		}
		next.run = steps[i].run + 1
		break
	}
	return next
}

// point is the moment before or after a step.
type point struct {
	step
	after bool
}

func (p point) String() string {
	return fmt.Sprintf("the %s of \"%s\" (run %d, place %d)", map[bool]string{false: "beginning", true: "end"}[p.after], p.does, p.run, p.offset)
}

// edges returns the points before the first step of each run, and before every 16th step of a
// run; and the points after runs of a single step.
func edges(steps []step) (out []point) {
	for i, s := range steps {
		if s.offset%16 == 0 {
			out = append(out, point{s, false})
		}
		if s.offset == 0 && (i == len(steps)-1 || steps[i+1].offset == 0) {
			out = append(out, point{s, true})
		}
	}
	return out
}

// isOneOf returns why the state in force is none of the plans; a nil plan means no shaping. was
// and will are the enforced states before and after. An engine may record the new plan before
// it enforces it, if it reports the difference as drift; and it may leave unused objects
// behind, if it reports them too.
func (s *suite) isOneOf(was, will string, plans ...*shaper.Plan) (problem string) {
	s.Helper()
	var st shaper.State
	err := s.server.Do(func() (err error) { st, err = s.engine.Observe(dev); return err })
	none := errors.Is(err, shaper.ErrNotShaped)
	if err != nil && !none {
		return fmt.Sprintf("cannot be observed: %v", err)
	}
	if !slices.ContainsFunc(plans, func(p *shaper.Plan) bool { return p == nil && none || p != nil && !none && st.Plan.Equal(*p) }) {
		return fmt.Sprintf("the plan in force is %+v", st.Plan)
	}
	now := s.enforced()
	left := slices.DeleteFunc(slices.Clone(st.Drift), func(c shaper.Change) bool { return c.Verb == "remove" })
	if len(left) > 0 && now != was || now != was && now != will {
		return fmt.Sprintf("the plan is enforced only in part:\n%s\nmissing:%s\nbefore:\n%s\nafter:\n%s", now, texts(st.Drift), was, will)
	}
	return ""
}

// enforced returns the traffic control that the device's packets pass, without values that
// change with every creation.
func (s *suite) enforced() string {
	s.Helper()
	all := snapshot(s, s.server, dev)
	var other []string // devices that the ingress hook redirects to
	for _, name := range redirects.FindAllString(all, -1) {
		if strings.Contains(all, "filter protocol all pref 1 bpf chain 0") && strings.Contains(ingressOf(all), "headgate") {
			other = append(other, name)
		}
	}
	slices.Sort(other)
	other = slices.Compact(other)
	tcs, _, _ := strings.Cut(snapshot(s, s.server, append([]string{dev}, other...)...), "$ ip -d link")
	var keep []string
	for line := range strings.Lines(tcs) {
		if name := redirects.FindString(line); name == "" || slices.Contains(other, name) {
			keep = append(keep, line)
		}
	}
	for _, name := range other {
		// And whether the device is up.
		text := labtest.Run(s, s.server, "ip", "-o", "link", "show", "dev", name)
		keep = append(keep, fmt.Sprintf("%s up: %v\n", name, upFlag.MatchString(text)))
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
	upFlag    = regexp.MustCompile(`[<,]UP[,>]`)
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
		s.Errorf("only %d of 25 processes were killed in time: the test is not valid", kills)
	}
	s.clear()
	if after := snapshot(s, s.server, dev); after != pristine {
		s.Errorf("before:\n%s\nafter:\n%s", pristine, after)
	}
}

// changing has the system calls by which a process changes something outside of it, besides
// netlink and bpf; changingBPF has the commands of bpf.
var changing = map[uint64]string{
	unix.SYS_MKDIRAT:  "mkdirat",
	unix.SYS_UNLINKAT: "unlinkat", unix.SYS_FLOCK: "flock", unix.SYS_MOUNT: "mount", unix.SYS_IOCTL: "ioctl",
}

var changingBPF = map[uint64]string{
	unix.BPF_MAP_CREATE: "create a map", unix.BPF_MAP_UPDATE_ELEM: "write to a map", unix.BPF_MAP_DELETE_ELEM: "delete from a map",
	unix.BPF_MAP_UPDATE_BATCH: "write to a map", unix.BPF_PROG_LOAD: "load a program", unix.BPF_OBJ_PIN: "pin",
	unix.BPF_LINK_CREATE: "create a link", unix.BPF_RAW_TRACEPOINT_OPEN: "create a link", unix.BPF_PROG_BIND_MAP: "bind the record",
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

// trace runs a child in the server's namespace and returns the steps of its first thread, which
// does all the work. It kills the child at a point, if given and reached.
func (s *suite) trace(c *exec.Cmd, at *point) (steps []step, killed bool) {
	s.Helper()
	// Only the thread that started the child may trace it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	s.do(c.Start)
	pid := c.Process.Pid
	defer func() { _ = c.Wait() }() // already reaped below; this releases what Start opened
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
			return steps, false
		case ws.Exited() || ws.Signaled():
			s.Fatalf("the child ended with %v: %v", ws, c.Stderr)
		case ws.StopSignal() != syscall.SIGTRAP|sysgood:
			if ws.StopSignal() != syscall.SIGTRAP {
				signal = int(ws.StopSignal())
			}
			continue
		}
		does := s.stepOf(pid)
		ends := inStep && does == ""
		inStep = does != ""
		if inStep {
			steps = append(steps, follows(steps, does))
		}
		if at != nil && (inStep || ends) && at.after == ends && steps[len(steps)-1] == at.step {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				s.Fatalf("kill the child: %v", err)
			}
			for ws = wait(); !ws.Signaled() && !ws.Exited(); ws = wait() {
			}
			return steps, true
		}
	}
}

// stepOf returns the description of the system call that a stopped child is about to enter, or
// "" if the call changes nothing, or has ended.
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
	case info.Number == unix.SYS_SENDTO:
		return s.request(pid, info.Args[1])
	case info.Number == unix.SYS_SENDMSG:
		// struct msghdr: the name, its length, and the vector, whose first element starts with
		// the data pointer.
		return s.request(pid, s.word(pid, s.word(pid, info.Args[1]+16)))
	}
	return changing[info.Number]
}

const netlinkStep = "netlink "

// requests describes the first netlink message of a call; "" means that the request only reads
// and is not a step.
var requests = map[uint16]string{
	unix.RTM_NEWLINK: "create or change a device", unix.RTM_SETLINK: "set a device", unix.RTM_DELLINK: "remove a device",
	unix.RTM_NEWQDISC: "create a qdisc", unix.RTM_DELQDISC: "remove a qdisc", unix.RTM_NEWTCLASS: "create a class", unix.RTM_DELTCLASS: "remove a class",
	unix.RTM_NEWTFILTER: "create a filter", unix.RTM_DELTFILTER: "remove a filter",
	unix.RTM_GETLINK: "", unix.RTM_GETQDISC: "", unix.RTM_GETTCLASS: "", unix.RTM_GETTFILTER: "",
}

// request reads the type of a message in the child's memory (struct nlmsghdr).
func (s *suite) request(pid int, at uint64) string {
	typ := uint16(s.word(pid, at) >> 32)
	what, known := requests[typ]
	switch {
	case !known:
		return fmt.Sprintf(netlinkStep+"message of type %d", typ)
	case what == "":
		return ""
	}
	return netlinkStep + what
}

// word reads eight bytes of the child's memory.
func (s *suite) word(pid int, at uint64) uint64 {
	var b [8]byte
	if n, err := syscall.PtracePeekData(pid, uintptr(at), b[:]); err != nil || n < len(b) {
		s.Fatalf("read the child's memory: %v", err)
	}
	return binary.NativeEndian.Uint64(b[:])
}
