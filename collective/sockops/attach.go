package sockops

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"headgate/collective"
	"headgate/internal/cgroup2"
)

// Set is which connections a program takes into the table.
type Set struct {
	// Number is what they are told apart by.
	Number uint32
	// Cgroup is that of the processes that make them, if there is one now: a path below the
	// cgroup v2 mount, "/" for all. With "" nobody's are taken in unless asked for.
	Cgroup string
	// Rules: one of them has to be true of a connection; none is all.
	Rules []collective.Rule
}

// NoSet is of connections whose set is gone: Join gives them to another.
const NoSet = 1<<32 - 1

// cgroup is the id of a cgroup, and how deep it is; id 0 is none.
func cgroup(path string) (id uint64, level uint32, err error) {
	if path == "" {
		return 0, 0, nil
	}
	if id, err = cgroup2.ID(path); err != nil {
		return 0, 0, err
	}
	level, err = cgroup2.Level(path)
	return id, level, err
}

// Attach watches the connections that are made from now on, if they are in the set. Of sets
// that could have one the set of the nearest cgroup has it, and of those the one that was
// attached first. What an earlier process attached for the same number is replaced, with no
// time in between.
func (t *Table) Attach(s Set) error {
	c, err := t.load(s, "headgate_collective")
	if err != nil {
		return fmt.Errorf("cannot load the program that reads connections: %w", err)
	}
	if err := t.attach(c.Programs["headgate_collective"], s.Number); err != nil {
		c.Close()
		return err
	}
	if before := t.programs[s.Number]; before != nil {
		before.Close()
	}
	t.programs[s.Number] = c
	return nil
}

func (t *Table) attach(p *ebpf.Program, set uint32) error {
	root, err := cgroup2.Mount()
	if err != nil {
		return err
	}
	l, err := link.AttachCgroup(link.CgroupOptions{Path: root, Attach: ebpf.AttachCGroupSockOps, Program: p})
	if errors.Is(err, unix.E2BIG) { // BPF_CGROUP_MAX_PROGS
		return fmt.Errorf("cannot watch the cgroups at %s: the kernel has room for 64 programs there, those of others among them: have fewer sets", root)
	}
	if err != nil {
		return fmt.Errorf("cannot watch the cgroups at %s: %w", root, err)
	}
	defer l.Close()
	pin := filepath.Join(t.dir, fmt.Sprintf("%s%d", linkPrefix, set))
	fresh := pin + "-new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := l.Pin(fresh); err != nil {
		return err
	}
	return os.Rename(fresh, pin)
}

// Follow tells an attached set of its cgroup, which was not there before or is another now
// that its service has been started again; "" is that there is none.
func (t *Table) Follow(set uint32, path string) error {
	id, level, err := cgroup(path)
	if err != nil {
		return err
	}
	v := t.programs[set].Variables
	// Id 0 is nobody's, while level and id do not belong to each other.
	for _, to := range []struct {
		name  string
		value any
	}{{"cgroup_id", uint64(0)}, {"cgroup_level", level}, {"cgroup_id", id}} {
		if err := v[to.name].Set(to.value); err != nil {
			return err
		}
	}
	return nil
}

// ErrNoJoin means that this kernel has no way to watch a connection that is open.
var ErrNoJoin = errors.New("connections that are open can be taken in from Linux 6.13 on")

// Join takes in the connections of a set that are open already, in every network namespace
// that a process is in or that has a name; one that is in the set of a cgroup further up goes
// over. Before Linux 6.13 that is ErrNoJoin for those that are in no set.
func (t *Table) Join(s Set) error {
	if s.Cgroup == "" {
		return nil
	}
	c, err := t.load(s, "headgate_open")
	if err != nil {
		return fmt.Errorf("cannot load the program that finds open connections: %w", err)
	}
	defer c.Close()
	l, err := link.AttachIter(link.IterOptions{Program: c.Programs["headgate_open"]})
	if err != nil {
		return err
	}
	defer l.Close()
	deaf, err := t.counted(countDeaf)
	if err != nil {
		return err
	}
	if err := everyNamespace(func() error { return run(l) }); err != nil {
		return err
	}
	if now, err := t.counted(countDeaf); err != nil || now != deaf {
		return errors.Join(err, ErrNoJoin)
	}
	return nil
}

// run has a program visit every TCP connection of this thread's network namespace.
func run(l *link.Iter) error {
	r, err := l.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(io.Discard, r)
	return err
}

// load loads one of the programs for a set, on the table's maps.
func (t *Table) load(s Set, name string) (*ebpf.Collection, error) {
	spec, err := loadSockops()
	if err != nil {
		return nil, err
	}
	for other := range spec.Programs {
		if other != name {
			delete(spec.Programs, other)
		}
	}
	id, level, err := cgroup(s.Cgroup)
	if err != nil {
		return nil, err
	}
	rules, n, err := kernelRules(s.Rules)
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]any{
		"set_of": s.Number, "rules": rules, "rules_n": n, "cgroup_id": id, "cgroup_level": level, "threshold_name": t.threshold,
	} {
		if err := spec.Variables[name].Set(value); err != nil {
			return nil, err
		}
	}
	replace := map[string]*ebpf.Map{}
	for name, m := range t.maps() {
		spec.Maps[name].MaxEntries = (*m).MaxEntries()
		replace[name] = *m
	}
	return ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: replace})
}

// Detach takes away what is watched, by this process or an earlier one, but for some sets.
func (t *Table) Detach(but ...uint32) error {
	for n, c := range t.programs {
		if !slices.Contains(but, n) {
			c.Close()
			delete(t.programs, n)
		}
	}
	links, err := filepath.Glob(filepath.Join(t.dir, linkPrefix+"*"))
	if err != nil {
		return err
	}
	for _, l := range links {
		keep := slices.ContainsFunc(but, func(n uint32) bool { return filepath.Base(l) == fmt.Sprintf("%s%d", linkPrefix, n) })
		if keep {
			continue
		}
		if err := os.Remove(l); err != nil {
			return err
		}
	}
	return nil
}

// Abandon takes connections out of their sets that are not to stay in them: Join may give
// them to another, and if none has them every program lifts what still holds them.
func (t *Table) Abandon(stays func(*Connection) bool) {
	for c := range t.Connections() {
		if !stays(c) {
			t.all[c.slot].Set = NoSet
		}
	}
}
