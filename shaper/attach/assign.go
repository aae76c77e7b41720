package attach

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/cilium/ebpf"

	"headgate.dev/headgate/internal/bpfobj"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/classifier"
)

// Assign assigns connections to groups, with precedence over all rules.
func (d *Device) Assign(list []shaper.Assignment) error {
	t, err := d.writable()
	if err != nil {
		return err
	}
	keys, values := make([]classifier.ConnKey, 0, 2*len(list)), make([]uint32, 0, 2*len(list))
	known := map[string]uint32{} // cached, because each search walks the tree
	for _, a := range list {
		classes, ok := known[a.Group]
		if !ok {
			if classes, err = d.classesOf(a.Group); err != nil {
				return err
			}
			known[a.Group] = classes
		}
		for _, key := range classifier.Keys(a.Conn) {
			keys, values = append(keys, key), append(values, classes)
		}
	}
	err = t.put(keys, values)
	switch {
	case errors.Is(err, errFull):
		return fmt.Errorf("device %s cannot hold %d more assigned connections: the maximum is %d", d.Name(), len(list), t.assigned.MaxEntries()/2)
	case err != nil:
		return fmt.Errorf("cannot assign %d connections on %s: %w", len(list), d.Name(), err)
	}
	return nil
}

var errFull = errors.New("the assignment table is full")

// put writes all entries or none, and invalidates the flow caches in both cases, because some
// entries may have been present for a moment. The number of free entries cannot be queried, and
// counting entries takes longer than trying.
func (t table) put(keys []classifier.ConnKey, values []uint32) error {
	if len(keys) > int(t.assigned.MaxEntries()) {
		return errFull
	}
	before, err := t.lookup(keys)
	if err != nil {
		return err
	}
	if err = classifier.PutAll(t.assigned, keys, values); err == nil {
		return t.invalidateCaches()
	}
	undo := t.restore(keys, before)
	if errors.Is(err, syscall.E2BIG) || t.full(len(keys)-len(before)) {
		err = errFull
	}
	return errors.Join(err, undo, t.invalidateCaches())
}

// lookup returns the existing values of some entries.
func (t table) lookup(keys []classifier.ConnKey) (map[classifier.ConnKey]uint32, error) {
	out := map[classifier.ConnKey]uint32{}
	for _, key := range keys {
		var classes uint32
		switch err := t.assigned.Lookup(key, &classes); {
		case err == nil:
			out[key] = classes
		case !errors.Is(err, ebpf.ErrKeyNotExist):
			return nil, err
		}
	}
	return out, nil
}

// restore restores the previous values of entries.
func (t table) restore(keys []classifier.ConnKey, before map[classifier.ConnKey]uint32) error {
	for _, key := range keys {
		var err error
		if classes, ok := before[key]; ok {
			err = t.assigned.Put(key, classes)
		} else {
			err = t.assigned.Delete(key)
		}
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("cannot undo the assignment of some connections: %w", err)
		}
	}
	return nil
}

// Unassign removes assignments, so that the rules apply again. A connection that is not
// assigned is an error that names it; the other connections are still unassigned.
func (d *Device) Unassign(list []shaper.Conn) error {
	t, err := d.writable()
	if err != nil {
		return err
	}
	return t.remove(list, d.Name())
}

// remove deletes entries, and invalidates the flow caches even if some entries cannot be
// deleted.
func (t table) remove(list []shaper.Conn, dev string) error {
	var failed []error
	for _, conn := range list {
		for i, key := range classifier.Keys(conn) {
			err := t.assigned.Delete(key)
			switch {
			case errors.Is(err, ebpf.ErrKeyNotExist):
				if i == 0 {
					failed = append(failed, fmt.Errorf("connection %v is not assigned on %s", conn, dev))
				}
			case err != nil:
				failed = append(failed, fmt.Errorf("cannot unassign connection %v on %s: %w", conn, dev, err))
			}
		}
	}
	return errors.Join(append(failed, t.invalidateCaches())...)
}

// Assigned returns the group that a connection is assigned to, or "" if there is none.
func (d *Device) Assigned(conn shaper.Conn) (string, error) {
	t, err := d.writable()
	if err != nil {
		return "", err
	}
	key := classifier.Keys(conn)[0]
	there, err := t.lookup([]classifier.ConnKey{key})
	if err != nil {
		return "", fmt.Errorf("cannot read the assigned connections: %w", err)
	}
	paths := d.paths()
	for _, in := range []bool{false, true} {
		if path, ok := paths[directionClass{in, classifier.ClassOf(there[key], in)}]; ok {
			return path, nil
		}
	}
	return "", nil
}

// Assignments lists the assigned connections.
func (d *Device) Assignments() ([]shaper.Assignment, error) {
	t, err := d.assignments()
	if err != nil {
		return nil, err
	}
	var out []shaper.Assignment
	paths := d.paths()
	seen := map[classifier.ConnKey]bool{}
	err = t.each(func(key classifier.ConnKey, classes uint32) {
		conn := key.Conn()
		both := classifier.Keys(conn)
		if seen[both[1]] {
			return
		}
		seen[key] = true
		for _, in := range []bool{false, true} {
			if path, ok := paths[directionClass{in, classifier.ClassOf(classes, in)}]; ok {
				out = append(out, shaper.Assignment{Conn: conn, Group: path})
				return
			}
		}
	})
	return out, err
}

// table holds the maps that the classifiers of both directions share.
type table struct{ assigned, control *ebpf.Map }

func (d *Device) assignments() (table, error) {
	for _, s := range d.Sides {
		if s.Record != nil && s.Maps[classifier.Assigned] != nil && s.Maps[classifier.ControlMap] != nil {
			return table{s.Maps[classifier.Assigned], s.Maps[classifier.ControlMap]}, nil
		}
	}
	return table{}, fmt.Errorf("device %s %w", d.Name(), shaper.ErrNotShaped)
}

// writable returns the maps, if their layout is that of this version of Headgate.
func (d *Device) writable() (table, error) {
	t, err := d.assignments()
	if err != nil {
		return t, err
	}
	entries, err := classifier.HasLayout[classifier.ConnKey, uint32](t.assigned)
	if err != nil {
		return t, err
	}
	control, err := classifier.HasLayout[uint32, classifier.Control](t.control)
	if err == nil && !(entries && control) {
		err = fmt.Errorf("device %s was configured by another version of Headgate with a different map layout: apply its configuration first", d.Name())
	}
	return t, err
}

// classesOf returns the class IDs of the leaf groups at a path in both directions, as the
// classifier encodes them: out in the lower bits, in in the upper bits.
func (d *Device) classesOf(path string) (uint32, error) {
	var classes uint32
	for _, s := range d.Sides {
		if s.Record == nil {
			continue
		}
		for _, n := range s.Record.Tree().Nodes {
			if n.Leaf && n.Path == path {
				classes |= classifier.AssignedClass(s.Record.Class(n), s.Record.In)
			}
		}
	}
	if classes == 0 {
		return 0, fmt.Errorf("device %s has no leaf group %q", d.Name(), path)
	}
	return classes, nil
}

// directionClass is a class ID in one direction.
type directionClass struct {
	in bool
	id uint16
}

// paths maps class IDs to group paths.
func (d *Device) paths() map[directionClass]string {
	out := map[directionClass]string{}
	for _, s := range d.Sides {
		if s.Record == nil {
			continue
		}
		for _, n := range s.Record.Tree().Nodes {
			if n.Leaf {
				out[directionClass{s.Record.In, s.Record.Class(n)}] = n.Path
			}
		}
	}
	return out
}

// invalidateCaches invalidates the flow caches, so that they read the table again.
func (t table) invalidateCaches() error {
	var now classifier.Control
	if err := t.control.Lookup(uint32(0), &now); err != nil {
		return fmt.Errorf("cannot invalidate the flow caches after a change of assignments: %w", err)
	}
	now.AssignEpoch++
	if err := t.control.Put(uint32(0), now); err != nil {
		return fmt.Errorf("cannot invalidate the flow caches after a change of assignments: %w", err)
	}
	return nil
}

// each calls do for every entry. Entries that are added or deleted meanwhile may be missed.
func (t table) each(do func(key classifier.ConnKey, classes uint32)) error {
	if err := classifier.Each(t.assigned, do); err != nil {
		return fmt.Errorf("cannot read the assigned connections: %w", err)
	}
	return nil
}

// full reports whether n more entries do not fit.
func (t table) full(n int) bool {
	count := 0
	err := t.each(func(classifier.ConnKey, uint32) { count++ })
	return err == nil && count+n > int(t.assigned.MaxEntries())
}

// Assigned counts the connections assigned in the direction of a side. It iterates over the
// table and is only for display.
func (s *Side) Assigned() (int, error) {
	m := s.Maps[classifier.Assigned]
	if m == nil || s.Record == nil {
		return 0, nil
	}
	count := 0
	err := table{assigned: m}.each(func(_ classifier.ConnKey, classes uint32) {
		if classifier.ClassOf(classes, s.Record.In) != 0 {
			count++
		}
	})
	if errors.Is(err, bpfobj.ErrLayout) {
		err = nil // of another Headgate version, which the next apply replaces
	}
	return count / 2, err
}

// DeleteStaleAssignments deletes the assignments to groups that no longer exist, so that their connections
// follow the rules, and not a later group with the same class ID. next has the records in
// force, and shared has the maps that their programs share. DeleteStaleAssignments depends only on
// the present state, so it also completes the work of a process that was killed after a change.
func (d *Device) DeleteStaleAssignments(shared map[string]*ebpf.Map, next ...*classifier.Record) error {
	there := keys(next...)
	if len(there) == 0 {
		return nil // no groups are left
	}
	_, err := sharedTable(shared).deleteAssignments(func(c directionClass) bool { return there[c] == "" })
	return err
}

// HasStaleAssignments reports whether DeleteStaleAssignments has assignments to delete once next is in
// force. It is cheaper than iterating over the table, which is large.
func (d *Device) HasStaleAssignments(next ...*classifier.Record) bool {
	there := keys(next...)
	for c := range keys(d.Sides[Egress].Record, d.Sides[Ingress].Record) {
		if there[c] == "" {
			return true
		}
	}
	return false
}

// DeleteReusedAssignments deletes the assignments to class IDs that stand for another group in next:
// leftovers of a killed process, and, if class IDs run out, an ID that passes from a removed group to a
// new one. It must be called before the change, because afterwards the old group of an assignment is
// unknown. The returned function restores the assignments if the change fails.
func (d *Device) DeleteReusedAssignments(shared map[string]*ebpf.Map, next ...*classifier.Record) (undo func() error, err error) {
	was, renewed := keys(d.Sides[Egress].Record, d.Sides[Ingress].Record), map[directionClass]bool{}
	for c, key := range keys(next...) {
		if was[c] != key {
			renewed[c] = true
		}
	}
	if len(was) == 0 || len(renewed) == 0 {
		return func() error { return nil }, nil
	}
	t := sharedTable(shared)
	taken, err := t.deleteAssignments(func(c directionClass) bool { return renewed[c] })
	return func() error {
		for key, classes := range taken {
			if err := t.assigned.Put(key, classes); err != nil {
				return fmt.Errorf("cannot restore the assignment of %v: %w", key.Conn(), err)
			}
		}
		if len(taken) == 0 {
			return nil
		}
		return t.invalidateCaches()
	}, err
}

// keys maps class IDs to the group keys of the records.
func keys(records ...*classifier.Record) map[directionClass]string {
	out := map[directionClass]string{}
	for _, r := range records {
		if r == nil {
			continue
		}
		for key, id := range r.Classes {
			out[directionClass{r.In, id}] = key
		}
	}
	return out
}

func sharedTable(shared map[string]*ebpf.Map) table {
	return table{shared[classifier.Assigned], shared[classifier.ControlMap]}
}

// deleteAssignments deletes the assignments to the groups for which gone is true, and returns the
// deleted values.
func (t table) deleteAssignments(gone func(directionClass) bool) (taken map[classifier.ConnKey]uint32, err error) {
	if t.assigned == nil || t.control == nil {
		return nil, nil
	}
	taken = map[classifier.ConnKey]uint32{}
	left := func(classes uint32) uint32 {
		for _, in := range []bool{false, true} {
			if id := classifier.ClassOf(classes, in); id != 0 && gone(directionClass{in, id}) {
				classes &^= classifier.AssignedClass(id, in)
			}
		}
		return classes
	}
	err = t.each(func(key classifier.ConnKey, classes uint32) {
		if left(classes) != classes {
			taken[key] = classes
		}
	})
	if err != nil || len(taken) == 0 {
		return taken, err
	}
	for key, classes := range taken {
		if classes = left(classes); classes == 0 {
			err = t.assigned.Delete(key)
		} else {
			err = t.assigned.Put(key, classes)
		}
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return taken, fmt.Errorf("cannot delete the assignments to removed groups: %w", err)
		}
	}
	return taken, t.invalidateCaches()
}

// Shared returns the maps that both directions share, from the attached programs or from loaded
// programs, which take precedence.
func (d *Device) Shared(loaded ...*classifier.Program) map[string]*ebpf.Map {
	out := map[string]*ebpf.Map{}
	take := func(from map[string]*ebpf.Map) {
		for _, name := range []string{classifier.Assigned, classifier.ControlMap} {
			if m, ok := from[name]; ok {
				out[name] = m
			}
		}
	}
	for i := range d.Sides {
		take(d.Sides[i].Maps)
	}
	for _, l := range loaded {
		if l != nil {
			take(l.Maps)
		}
	}
	return out
}
