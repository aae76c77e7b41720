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

	"headgate.dev/headgate/collective"
	"headgate.dev/headgate/internal/cgroup2"
)

// Set selects the connections that a program adds to the table.
type Set struct {
	// Number identifies the set.
	Number uint32
	// Cgroup is the cgroup of the processes that make the connections, if it exists: a
	// path below the cgroup v2 mount, "/" for all. With "" only connections that join are
	// added.
	Cgroup string
	// Rules select connections: one of them must match; no rules match all.
	Rules []collective.Rule
}

// NoSet is the set of connections whose set was removed: Join adds them to another one.
const NoSet = 1<<32 - 1

// cgroup returns the ID of a cgroup and its level; ID 0 is none.
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

// Attach watches new connections that are in the set. If several sets match, the set of
// the nearest cgroup has the connection, and of those the one that was attached first.
// The program that an earlier process attached for the same number is replaced
// atomically.
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
		return fmt.Errorf("cannot attach to the cgroup %s: the kernel's limit of 64 programs, including foreign ones, is reached: configure fewer sets", root)
	}
	if err != nil {
		return fmt.Errorf("cannot attach to the cgroup %s: %w", root, err)
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

// Follow sets the cgroup of an attached set, which is new or has been replaced because
// its service was restarted; "" is none.
func (t *Table) Follow(set uint32, path string) error {
	id, level, err := cgroup(path)
	if err != nil {
		return err
	}
	v := t.programs[set].Variables
	// ID 0 matches no cgroup, while level and ID are inconsistent.
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

// ErrNoJoin is the error if the kernel cannot enable callbacks of an open connection.
var ErrNoJoin = errors.New("adding open connections needs Linux 6.13 or later")

// Join adds the open connections of a set, in every network namespace that a process is
// in or that has a name. A connection in the set of a parent cgroup moves to this set.
// Before Linux 6.13 Join returns ErrNoJoin if there are open connections that are in no
// set.
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
	deaf, err := t.counted(countNoCallback)
	if err != nil {
		return err
	}
	if err := forEachNamespace(func() error { return run(l) }); err != nil {
		return err
	}
	if now, err := t.counted(countNoCallback); err != nil || now != deaf {
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

// load loads one of the programs for a set, with the table's maps.
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

// Detach detaches the programs of all sets except but, also those of an earlier process.
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

// RemoveConnections removes the connections for which keep returns false from their sets. Join may
// add them to another set; the programs of all sets lift the caps of those in none.
func (t *Table) RemoveConnections(keep func(*Connection) bool) {
	for c := range t.Connections() {
		if !keep(c) {
			t.all[c.slot].Set = NoSet
		}
	}
}
