package lab

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// patience is the time limit for a process to exit and for the kernel to release a namespace. Both
// take some ms; on a machine with all CPUs busy they took 2 s, and beside the build of three packages ovs-vsctl took more than 10.
const patience = 30 * time.Second

// Leftover is a lab that has a state file, or namespaces.
type Leftover struct {
	Name string `json:"name"`
	// Owner is the pid of the program that created the lab, and Command its command line.
	Owner   int       `json:"owner_pid"`
	Command string    `json:"command"`
	Made    time.Time `json:"made"`
	// InUse: the owner runs. Kept: the lab was created to stay. Neither: the owner was killed, and
	// Down should be called.
	InUse bool `json:"in_use"`
	Kept  bool `json:"kept"`
	// Held: its owner only holds the lab, so that Down ends the owner.
	Held bool `json:"held"`
}

// Leftovers lists every lab of this machine: first those with a state file, by name, then those whose
// file is lost.
func Leftovers() ([]Leftover, error) {
	gone := lost()
	names, err := filepath.Glob(filepath.Join(stateDir, "*.json"))
	if err != nil {
		return nil, err
	}
	var out []Leftover
	for _, path := range names {
		s, err := loadState(strings.TrimSuffix(filepath.Base(path), ".json"))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return out, err
		}
		out = append(out, Leftover{
			Name: s.Name, Owner: s.Owner.PID, Command: s.Command, Made: s.Made,
			InUse: s.Owner.alive() && s.Tenure != left, Kept: s.Tenure == left, Held: s.Tenure == held,
		})
	}
	for _, s := range gone {
		out = append(out, Leftover{Name: s.Name})
	}
	return out, nil
}

// Down removes a lab of this machine, including those of other processes: one that was left, one whose owner was
// killed, or one that a program only holds; Down ends that program. A lab that a program uses, and an
// unknown name, are errors.
func Down(name string) error {
	if !labName.MatchString(name) {
		return configErrorf("%q is not a valid lab name", name)
	}
	s, err := findState(name)
	if errors.Is(err, os.ErrNotExist) {
		return configErrorf("there is no lab %q", name)
	}
	if err != nil {
		return err
	}
	if s.anothers() {
		if s.Tenure != held {
			return inUse(s)
		}
		if err := endHolder(s); err != nil {
			return err
		}
	}
	unlock, err := lockStates()
	if err != nil {
		return err
	}
	defer unlock()
	// The holder has removed it, or was killed while it did.
	if s, err = findState(name); errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if s.anothers() { // it was created again before we had the lock
		return inUse(s)
	}
	return destroy(s)
}

// anothers reports whether another running process uses the lab.
func (s *state) anothers() bool {
	return s.Tenure != left && s.Owner != thisProcess() && s.Owner.alive()
}

func inUse(s *state) error {
	return configErrorf("lab %q is in use by process %d (%s): end that first", s.Name, s.Owner.PID, s.Command)
}

// endHolder terminates the holder, and kills it after half of patience.
func endHolder(s *state) error {
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		if err := unix.Kill(s.Owner.PID, sig); err != nil && !errors.Is(err, unix.ESRCH) {
			return permitted(fmt.Errorf("cannot end process %d, which holds lab %q: %w", s.Owner.PID, s.Name, err))
		}
		if waitFor(patience/2, func() bool { return !s.Owner.alive() }) {
			return nil
		}
	}
	return fmt.Errorf("process %d, which holds lab %q, does not exit", s.Owner.PID, s.Name)
}

// destroy removes everything of a lab, in an order in which every step can be repeated after a crash:
// processes, devices, names, the file. The caller holds the lock.
func destroy(s *state) error {
	var errs []error
	inodes := s.inodes()
	ids := map[int]string{}
	if err := endProcesses(s, inodes, nil); err != nil {
		errs = append(errs, err)
	}
	var mu sync.Mutex // guards errs and ids
	names := s.namespaces()
	inParallel(len(names), func(i int) {
		name := names[i]
		id, err := emptyNamespace(name)
		if err != nil {
			err = fmt.Errorf("cannot remove the devices of namespace %s: %w", name, err)
		}
		err = errors.Join(err, dropName(name))
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			errs = append(errs, err)
		}
		if id >= 0 {
			ids[id] = name
		}
	})
	if err := waitGone(ids, inodes); err != nil {
		errs = append(errs, err)
	}
	if err := os.RemoveAll(switchesDir(s.Name)); err != nil {
		errs = append(errs, permitted(err))
	}
	if len(errs) > 0 {
		return fmt.Errorf("cannot take lab %q down: %w", s.Name, errors.Join(errs...))
	}
	os.Remove(tmpPath(s.Name)) // of an interrupted save
	if err := os.Remove(statePath(s.Name)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil // the file was lost
}

// End kills every process that was started in the lab, or runs in its namespaces, except its switches,
// and leaves the network unchanged.
func (l *Lab) End() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return endProcesses(l.state, l.state.inodes(), l.switches.pids())
}

// inodes maps inodes to the names of the namespaces.
func (s *state) inodes() map[uint64]string {
	inodes := map[uint64]string{}
	for _, name := range s.namespaces() {
		ns, err := netns.GetFromPath(filepath.Join(netnsDir, name))
		if err != nil {
			continue // not created yet, or already removed
		}
		var st unix.Stat_t
		if err := unix.Fstat(int(ns), &st); err == nil {
			inodes[st.Ino] = name
		}
		ns.Close()
	}
	return inodes
}

// endProcesses kills the processes that were started in the lab, and those that run in its
// namespaces: a child may have been started and not yet recorded. It spares some pids.
func endProcesses(s *state, inodes map[uint64]string, spare []int) error {
	// A recorded process is killed whatever its namespace is now.
	doomed := slices.Clone(s.Processes)
	for _, pid := range inside(inodes) {
		doomed = append(doomed, processOf(pid))
	}
	doomed = slices.DeleteFunc(doomed, func(p process) bool { return p.PID == os.Getpid() || slices.Contains(spare, p.PID) })
	for _, p := range doomed {
		if p.alive() {
			if err := unix.Kill(p.PID, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return permitted(fmt.Errorf("cannot kill process %d: %w", p.PID, err))
			}
		}
	}
	for _, p := range doomed {
		if !waitFor(patience, func() bool { return !p.alive() }) {
			return fmt.Errorf("process %d does not exit", p.PID)
		}
	}
	return nil
}

// inside lists the processes of which all threads have a network namespace in inodes. A program may
// visit every namespace of the machine with one thread, even its first ("headgate collective run"
// does), and must not be killed for that.
func inside(inodes map[uint64]string) []int {
	dirs, _ := os.ReadDir("/proc")
	var out []int
	for _, d := range dirs {
		pid, err := strconv.Atoi(d.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/ns/net", pid))
		here, elsewhere := 0, 0
		for _, file := range threads {
			var st unix.Stat_t
			switch err := unix.Stat(file, &st); {
			case errors.Is(err, unix.ENOENT): // the thread has ended
			case err == nil && inodes[st.Ino] != "":
				here++
			default: // or unknown, as of process 1 in some containers
				elsewhere++
			}
		}
		if here > 0 && elsewhere == 0 {
			out = append(out, pid)
		}
	}
	return out
}

// emptyNamespace deletes every device in the namespace; the kernel would do so some time after the
// last user has left. It returns the id by which the end of the namespace can be observed, or -1
// without a namespace.
func emptyNamespace(name string) (id int, err error) {
	ns, err := netns.GetFromPath(filepath.Join(netnsDir, name))
	if err != nil {
		return -1, nil
	}
	defer ns.Close()
	h, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		return -1, nil // the file exists, the namespace does not
	}
	defer h.Close()
	if id, err = identify(int(ns)); err != nil {
		return -1, err
	}
	unclosed := inNamespace(int(ns), destroySockets)
	// A list that changed while it was read may lack devices: their other ends are being deleted in
	// other namespaces at the same time.
	for {
		links, err := h.LinkList()
		if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
			return id, err
		}
		for _, l := range links {
			// The other end of a veth is removed with the first.
			if err := h.LinkDel(l); err != nil && l.Attrs().Name != "lo" && !errors.Is(err, unix.ENODEV) {
				return id, errors.Join(unclosed, fmt.Errorf("cannot delete device %s: %w", l.Attrs().Name, err))
			}
		}
		if err == nil {
			break
		}
	}
	return id, unclosed
}

// identify gives a namespace an id in the current namespace, if it has none. The id is a large random number. The
// kernel would take the lowest free number, and another program's next namespace could soon get the
// same.
func identify(ns int) (id int, err error) {
	for range 10 {
		if id, err = netlink.GetNetNsIdByFd(ns); err != nil || id >= 0 {
			return id, err
		}
		id = 1<<20 + rand.IntN(1<<30)
		if err = netlink.SetNetNsIdByFd(ns, id); !errors.Is(err, unix.EEXIST) {
			return id, err
		}
	}
	return -1, err
}

// waitGone waits until the kernel has released the namespaces' ids, which is the first thing that it
// does when it destroys a namespace.
func waitGone(ids map[int]string, inodes map[uint64]string) error {
	if len(ids) == 0 {
		return nil
	}
	var err error
	gone := waitFor(patience, func() bool {
		var live map[int]bool
		if live, err = namespaceIDs(); err != nil {
			return false
		}
		maps.DeleteFunc(ids, func(id int, _ string) bool { return !live[id] })
		return len(ids) == 0
	})
	if !gone {
		if err != nil {
			return fmt.Errorf("cannot list the kernel's namespaces: %w", err)
		}
		return fmt.Errorf("after %v the kernel has not released %s; in use by %s", patience,
			strings.Join(slices.Sorted(maps.Values(ids)), ", "), cmp.Or(strings.Join(holding(inodes), ", "), "no process"))
	}
	return nil
}

// namespaceIDs lists the ids of the namespaces that have one in the caller's (RTM_GETNSID).
func namespaceIDs() (map[int]bool, error) {
	req := nl.NewNetlinkRequest(unix.RTM_GETNSID, unix.NLM_F_DUMP)
	req.AddData(nl.NewRtGenMsg())
	msgs, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWNSID)
	if err != nil {
		return nil, err
	}
	ids := map[int]bool{}
	for _, m := range msgs {
		// The attributes follow struct rtgenmsg, aligned to 4 bytes.
		attrs, err := nl.ParseRouteAttr(m[4:])
		if err != nil {
			return nil, err
		}
		for _, a := range attrs {
			if a.Attr.Type == unix.NETNSA_NSID {
				ids[int(int32(binary.NativeEndian.Uint32(a.Value)))] = true
			}
		}
	}
	return ids, nil
}

// waitFor polls done, first at short intervals.
func waitFor(patience time.Duration, done func() bool) bool {
	deadline := time.Now().Add(patience)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		if done() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(pause)
	}
}
