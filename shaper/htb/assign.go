package htb

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"headgate/group"
	"headgate/internal/nl"
	"headgate/shaper"
	"headgate/shaper/classifier"
)

// Assign puts connections into groups, before every rule.
func (e *Engine) Assign(dev string, list []shaper.Assignment) error {
	return with(dev, func(c *nl.Conn, k *kernel) error {
		t, err := k.assignments()
		if err != nil {
			return err
		}
		keys, values := make([]classifier.ConnKey, 0, 2*len(list)), make([]uint32, 0, 2*len(list))
		for _, a := range list {
			classes, err := k.classesOf(a.Group)
			if err != nil {
				return err
			}
			for _, key := range classifier.Keys(a.Conn) {
				keys, values = append(keys, key), append(values, classes)
			}
		}
		if err := classifier.PutAll(t.assigned, keys, values); err != nil {
			if errors.Is(err, ebpf.ErrKeyExist) || t.full(len(keys)) {
				return fmt.Errorf("device %s has no room for %d more assigned connections: the most is %d", dev, len(list), t.assigned.MaxEntries()/2)
			}
			return fmt.Errorf("cannot assign %d connections on %s: %w", len(list), dev, err)
		}
		return t.announce()
	})
}

// Unassign returns connections to the rules. One that is not assigned is an
// error that names it; the others are returned all the same.
func (e *Engine) Unassign(dev string, list []shaper.Conn) error {
	return with(dev, func(c *nl.Conn, k *kernel) error {
		t, err := k.assignments()
		if err != nil {
			return err
		}
		var missing []error
		for _, conn := range list {
			for i, key := range classifier.Keys(conn) {
				err := t.assigned.Delete(key)
				switch {
				case errors.Is(err, ebpf.ErrKeyNotExist):
					if i == 0 {
						missing = append(missing, fmt.Errorf("connection %v is not assigned on %s", conn, dev))
					}
				case err != nil:
					return fmt.Errorf("cannot take back connection %v on %s: %w", conn, dev, err)
				}
			}
		}
		return errors.Join(append(missing, t.announce())...)
	})
}

// Assignments lists the connections that are assigned on a device.
func (e *Engine) Assignments(dev string) ([]shaper.Assignment, error) {
	var out []shaper.Assignment
	err := with(dev, func(c *nl.Conn, k *kernel) error {
		t, err := k.assignments()
		if err != nil {
			return err
		}
		paths := k.paths()
		var key classifier.ConnKey
		var classes uint32
		seen := map[classifier.ConnKey]bool{}
		for it := t.assigned.Iterate(); it.Next(&key, &classes); {
			conn := key.Conn()
			both := classifier.Keys(conn)
			if seen[both[1]] {
				continue
			}
			seen[key] = true
			path, ok := paths[classes]
			if !ok {
				path = "(removed)"
			}
			out = append(out, shaper.Assignment{Conn: conn, Group: path})
		}
		return nil
	})
	return out, err
}

// table are the maps that both directions' classifiers share.
type table struct{ assigned, control *ebpf.Map }

func (k *kernel) assignments() (table, error) {
	for _, s := range k.sides {
		if s.record != nil && s.record.Engine == group.HTB && s.maps[classifier.Assigned] != nil && s.maps[classifier.ControlMap] != nil {
			return table{s.maps[classifier.Assigned], s.maps[classifier.ControlMap]}, nil
		}
	}
	return table{}, fmt.Errorf("device %s %w", k.dev.Attrs().Name, shaper.ErrNotShaped)
}

// classesOf gives the class ids of a group in both directions, as the classifier
// wants them: out below, in above.
func (k *kernel) classesOf(name string) (uint32, error) {
	var classes uint32
	var first error
	for _, s := range k.sides {
		if s.record == nil {
			continue
		}
		t := s.record.Tree()
		i, err := t.Find(name)
		if err != nil {
			if first == nil {
				first = fmt.Errorf("device %s: %w", k.dev.Attrs().Name, err)
			}
			continue
		}
		minor := uint32(s.record.Classes[idKey(t.Nodes[i])])
		if s.record.In {
			minor <<= 16
		}
		classes |= minor
	}
	if classes == 0 {
		return 0, first
	}
	return classes, nil
}

// paths are the groups behind the values of the table.
func (k *kernel) paths() map[uint32]string {
	out := map[uint32]string{}
	for _, s := range k.sides {
		if s.record == nil {
			continue
		}
		for _, n := range s.record.Tree().Nodes {
			if !n.Leaf {
				continue
			}
			if classes, err := k.classesOf(n.Path); err == nil {
				out[classes] = n.Path
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

// full tells whether n more entries do not fit.
func (t table) full(n int) bool {
	count := 0
	var key classifier.ConnKey
	var value uint32
	for it := t.assigned.Iterate(); it.Next(&key, &value); {
		count++
	}
	return count+n > int(t.assigned.MaxEntries())
}

// countAssigned counts the connections that are assigned in a direction. It is
// only for show, and walks the table.
func countAssigned(m *ebpf.Map, in bool) (int, error) {
	if m == nil {
		return 0, nil
	}
	shift, count := 0, 0
	if in {
		shift = 16
	}
	var key classifier.ConnKey
	var value uint32
	it := m.Iterate()
	for it.Next(&key, &value) {
		if value>>shift&0xffff != 0 {
			count++
		}
	}
	return count / 2, it.Err()
}
