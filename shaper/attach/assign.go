package attach

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/cilium/ebpf"

	"headgate/internal/bpfobj"
	"headgate/shaper"
	"headgate/shaper/classifier"
)

// Assign puts connections into groups, before every rule.
func (d *Device) Assign(list []shaper.Assignment) error {
	t, err := d.writable()
	if err != nil {
		return err
	}
	keys, values := make([]classifier.ConnKey, 0, 2*len(list)), make([]uint32, 0, 2*len(list))
	known := map[string]uint32{} // to find a group is to walk the tree
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
		return fmt.Errorf("device %s has no room for %d more assigned connections: the most is %d", d.Name(), len(list), t.assigned.MaxEntries()/2)
	case err != nil:
		return fmt.Errorf("cannot assign %d connections on %s: %w", len(list), d.Name(), err)
	}
	return nil
}

var errFull = errors.New("no room")

// put writes all entries or none, and announces it either way: for a moment some
// may have been there, and flow caches may know them. How much room there is cannot
// be asked, and to count took longer than to try.
func (t table) put(keys []classifier.ConnKey, values []uint32) error {
	if len(keys) > int(t.assigned.MaxEntries()) {
		return errFull
	}
	before, err := t.lookup(keys)
	if err != nil {
		return err
	}
	if err = classifier.PutAll(t.assigned, keys, values); err == nil {
		return t.announce()
	}
	undo := t.restore(keys, before)
	if errors.Is(err, syscall.E2BIG) || t.full(len(keys)-len(before)) {
		err = errFull
	}
	return errors.Join(err, undo, t.announce())
}

// lookup gives what there is of some entries.
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

// restore gives entries the values that they had.
func (t table) restore(keys []classifier.ConnKey, before map[classifier.ConnKey]uint32) error {
	for _, key := range keys {
		var err error
		if classes, ok := before[key]; ok {
			err = t.assigned.Put(key, classes)
		} else {
			err = t.assigned.Delete(key)
		}
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("and some of them stay assigned: %w", err)
		}
	}
	return nil
}

// Unassign returns connections to the rules. One that is not assigned is an
// error that names it; the others are returned all the same.
func (d *Device) Unassign(list []shaper.Conn) error {
	t, err := d.writable()
	if err != nil {
		return err
	}
	return t.remove(list, d.Name())
}

// remove takes entries back, and announces it also if some cannot be.
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
				failed = append(failed, fmt.Errorf("cannot take back connection %v on %s: %w", conn, dev, err))
			}
		}
	}
	return errors.Join(append(failed, t.announce())...)
}

// Assigned is the group that a connection is assigned to, "" if it is to none.
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
		if path, ok := paths[directed{in, classifier.ClassOf(there[key], in)}]; ok {
			return path, nil
		}
	}
	return "", nil
}

// Assignments lists the connections that are assigned.
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
			if path, ok := paths[directed{in, classifier.ClassOf(classes, in)}]; ok {
				out = append(out, shaper.Assignment{Conn: conn, Group: path})
				return
			}
		}
	})
	return out, err
}

// table are the maps that both directions' classifiers share.
type table struct{ assigned, control *ebpf.Map }

func (d *Device) assignments() (table, error) {
	for _, s := range d.Sides {
		if s.Record != nil && s.Maps[classifier.Assigned] != nil && s.Maps[classifier.ControlMap] != nil {
			return table{s.Maps[classifier.Assigned], s.Maps[classifier.ControlMap]}, nil
		}
	}
	return table{}, fmt.Errorf("device %s %w", d.Name(), shaper.ErrNotShaped)
}

// writable are the tables, if this Headgate lays them out as the one does that is
// in force.
func (d *Device) writable() (table, error) {
	t, err := d.assignments()
	if err != nil {
		return t, err
	}
	entries, err := classifier.IsOf[classifier.ConnKey, uint32](t.assigned)
	if err != nil {
		return t, err
	}
	control, err := classifier.IsOf[uint32, classifier.Control](t.control)
	if err == nil && !(entries && control) {
		err = fmt.Errorf("device %s is divided by another version of Headgate, whose tables are others: apply its configuration first", d.Name())
	}
	return t, err
}

// classesOf gives the class ids of the leaves at a path in both directions, as the
// classifier wants them: out below, in above.
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
		return 0, fmt.Errorf("device %s: there is no group %q that connections may be in", d.Name(), path)
	}
	return classes, nil
}

// directed is a class id of one direction.
type directed struct {
	in bool
	id uint16
}

// paths are the groups behind class ids.
func (d *Device) paths() map[directed]string {
	out := map[directed]string{}
	for _, s := range d.Sides {
		if s.Record == nil {
			continue
		}
		for _, n := range s.Record.Tree().Nodes {
			if n.Leaf {
				out[directed{s.Record.In, s.Record.Class(n)}] = n.Path
			}
		}
	}
	return out
}

// announce makes the flow caches ask the table again.
func (t table) announce() error {
	var now classifier.Control
	if err := t.control.Lookup(uint32(0), &now); err != nil {
		return fmt.Errorf("cannot announce the change of assignments: %w", err)
	}
	now.AssignEpoch++
	if err := t.control.Put(uint32(0), now); err != nil {
		return fmt.Errorf("cannot announce the change of assignments: %w", err)
	}
	return nil
}

// each goes through the table. Entries that come or go meanwhile may be missed.
func (t table) each(do func(key classifier.ConnKey, classes uint32)) error {
	if err := classifier.Each(t.assigned, do); err != nil {
		return fmt.Errorf("cannot read the assigned connections: %w", err)
	}
	return nil
}

// full tells whether n more entries do not fit.
func (t table) full(n int) bool {
	count := 0
	err := t.each(func(classifier.ConnKey, uint32) { count++ })
	return err == nil && count+n > int(t.assigned.MaxEntries())
}

// Assigned counts the connections that are assigned in the direction of a side.
// It is only for show, and walks the table.
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
		err = nil // another Headgate's, which the next apply replaces
	}
	return count / 2, err
}

// Forget takes back the assignments to groups that are no longer there, so that
// their connections follow the rules, and not whichever group gets the class id
// next. next are the records in force, and shared the maps that their programs have
// in common. It asks only what is, and so makes up for a process that was killed
// between a change and this.
func (d *Device) Forget(shared map[string]*ebpf.Map, next ...*classifier.Record) error {
	there := keys(next...)
	if len(there) == 0 {
		return nil // nothing is left at all
	}
	_, err := sharedTable(shared).takeBack(func(c directed) bool { return there[c] == "" })
	return err
}

// Loses tells whether there is something to forget once next is in force: the
// table is large.
func (d *Device) Loses(next ...*classifier.Record) bool {
	there := keys(next...)
	for c := range keys(d.Sides[Egress].Record, d.Sides[Ingress].Record) {
		if there[c] == "" {
			return true
		}
	}
	return false
}

// Renew takes back the assignments to class ids that mean another group in next:
// what a killed process did not forget, and, where the ids run out, a group's that
// goes as the new one comes. It must come before the change: after it nobody can
// tell whose an assignment was. It gives what undoes it if the change fails.
func (d *Device) Renew(shared map[string]*ebpf.Map, next ...*classifier.Record) (undo func() error, err error) {
	was, renewed := keys(d.Sides[Egress].Record, d.Sides[Ingress].Record), map[directed]bool{}
	for c, key := range keys(next...) {
		if was[c] != key {
			renewed[c] = true
		}
	}
	if len(was) == 0 || len(renewed) == 0 {
		return func() error { return nil }, nil
	}
	t := sharedTable(shared)
	taken, err := t.takeBack(func(c directed) bool { return renewed[c] })
	return func() error {
		for key, classes := range taken {
			if err := t.assigned.Put(key, classes); err != nil {
				return fmt.Errorf("cannot assign %v again: %w", key.Conn(), err)
			}
		}
		if len(taken) == 0 {
			return nil
		}
		return t.announce()
	}, err
}

// keys are the groups by class id, as records name them.
func keys(records ...*classifier.Record) map[directed]string {
	out := map[directed]string{}
	for _, r := range records {
		if r == nil {
			continue
		}
		for key, id := range r.Classes {
			out[directed{r.In, id}] = key
		}
	}
	return out
}

func sharedTable(shared map[string]*ebpf.Map) table {
	return table{shared[classifier.Assigned], shared[classifier.ControlMap]}
}

// takeBack takes connections out of groups, and gives what they were assigned to.
func (t table) takeBack(gone func(directed) bool) (taken map[classifier.ConnKey]uint32, err error) {
	if t.assigned == nil || t.control == nil {
		return nil, nil
	}
	taken = map[classifier.ConnKey]uint32{}
	left := func(classes uint32) uint32 {
		for _, in := range []bool{false, true} {
			if id := classifier.ClassOf(classes, in); id != 0 && gone(directed{in, id}) {
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
			return taken, fmt.Errorf("cannot take back the assignments to groups that are removed: %w", err)
		}
	}
	return taken, t.announce()
}

// Shared are the maps that both directions use, from whichever side has them or
// from programs that are loaded already, which take the place of the sides'.
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
