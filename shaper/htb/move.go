package htb

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/cilium/ebpf"

	"headgate/group"
	"headgate/internal/nl"
	"headgate/shaper"
	"headgate/shaper/classifier"
)

// move is the way from what a device has to what a plan wants.
type move struct {
	k     *kernel
	want  [2]want
	sides [2]sideMove
}

type sideMove struct {
	set, remove []step
	program     bool           // a new classifier is needed
	rules       *shaper.Change // in words, if packets will be classified otherwise
	gone        bool           // the side has something of ours and should have nothing
}

func newMove(k *kernel, p shaper.Plan) (*move, error) {
	w, err := desire(k, p)
	if err != nil {
		return nil, err
	}
	if err := blockers(k, w); err != nil {
		return nil, err
	}
	m := &move{k: k, want: w}
	for i := range m.sides {
		m.sides[i] = newSideMove(k.sides[i], w[i])
	}
	return m, nil
}

func newSideMove(s side, w want) (m sideMove) {
	if w.tree == nil {
		m.gone = s.program != 0 || s.tree.present
		return m
	}
	m.set, m.remove = treeSteps(w, s.tree)
	if !sameRules(s.record, &w.record) {
		m.rules = &shaper.Change{Verb: "change", Object: w.direction() + " rules", Detail: fmt.Sprintf("%d, and the default", len(w.tree.Rules))}
		if s.record == nil {
			m.rules.Verb = "add"
		}
	}
	m.program = len(m.set)+len(m.remove) > 0 || s.record == nil || !sameRecord(*s.record, w.record)
	return m
}

func (m *move) empty() bool {
	for _, s := range m.sides {
		if s.program || s.gone {
			return false
		}
	}
	return true
}

func (m *move) changes() []shaper.Change {
	out := []shaper.Change{}
	for i, s := range m.sides {
		for _, st := range s.set {
			if st.change != (shaper.Change{}) {
				out = append(out, st.change)
			}
		}
		if s.rules != nil {
			out = append(out, *s.rules)
		}
		for _, st := range s.remove {
			out = append(out, st.change)
		}
		if s.gone {
			out = append(out, shaper.Change{Verb: "remove", Object: [2]string{"egress", "ingress"}[i] + " shaping"})
		}
		if s.program && len(s.set)+len(s.remove) == 0 && s.rules == nil {
			out = append(out, shaper.Change{Verb: "change", Object: m.want[i].direction() + " record"})
		}
	}
	return out
}

// make carries the move out. Programs and maps are made first and do nothing by
// themselves; then one batch does everything at once, and only what is no longer
// used is taken away after it.
func (m *move) make(c *nl.Conn) error {
	if m.sides[ingress].program && m.k.sides[ingress].qdisc == nil {
		if err := m.k.addIFB(); err != nil {
			return err
		}
	}
	var loaded [2]*loadedProgram
	var used []uint32 // tokens that go out of use
	for i, s := range m.sides {
		if !s.program {
			continue
		}
		l, err := load(m.k, i, &m.want[i], sharedMaps(m.k, loaded))
		if err != nil {
			return err
		}
		defer l.close()
		loaded[i] = l
		if old := m.k.sides[i].record; old != nil && old.Token != l.record.Token {
			used = append(used, old.Token)
		}
	}
	b := m.batch(loaded)
	if err := c.Execute(b); err != nil {
		for _, l := range loaded {
			if l != nil && l.fresh {
				forget(l.record.Token)
			}
		}
		return fmt.Errorf("device %s: %w (apply again to repair it)", m.k.dev.Attrs().Name, err)
	}
	if m.sides[ingress].gone {
		if err := m.k.removeIFB(); err != nil {
			return err
		}
	}
	for i, s := range m.sides {
		if r := m.k.sides[i].record; s.gone && r != nil {
			used = append(used, r.Token)
		}
	}
	for _, t := range used {
		if t != 0 {
			forget(t)
		}
	}
	sweepIFBs()
	return nil
}

// batch is everything that changes what happens to packets, in one message.
func (m *move) batch(loaded [2]*loadedProgram) *nl.Batch {
	var b nl.Batch
	index := m.k.dev.Attrs().Index
	if !m.k.clsact && (loaded[egress] != nil || loaded[ingress] != nil) {
		b.AddClsact(index)
	}
	for i, s := range m.sides {
		if s.gone {
			b.DeleteFilter(index, hooks[i], filterPref)
			if i == egress && m.k.sides[i].tree.present {
				b.DeleteQdisc(index, nl.MakeHandle(major, 0), nl.Root)
			}
			continue
		}
		if !s.program {
			continue
		}
		at := m.k.sides[i].qdisc.Attrs().Index
		for _, st := range s.set {
			st.add(&b, at)
		}
		b.SetBPFFilter(index, hooks[i], filterPref, loaded[i].program.FD(), filterName)
		for _, st := range s.remove {
			st.add(&b, at)
		}
	}
	return &b
}

// loadedProgram is a classifier in the kernel, not attached yet.
type loadedProgram struct {
	program *ebpf.Program
	maps    map[string]*ebpf.Map
	record  classifier.Record
	fresh   bool // the token is new
}

func (l *loadedProgram) close() {
	l.program.Close()
	classifier.Close(l.maps)
}

// sharedMaps are the ones that both directions use, from whichever has them.
func sharedMaps(k *kernel, loaded [2]*loadedProgram) map[string]*ebpf.Map {
	out := map[string]*ebpf.Map{}
	take := func(from map[string]*ebpf.Map) {
		for _, name := range []string{classifier.Assigned, classifier.ControlMap} {
			if m, ok := from[name]; ok {
				out[name] = m
			}
		}
	}
	for i := range k.sides {
		take(k.sides[i].maps)
	}
	for _, l := range loaded {
		if l != nil {
			take(l.maps)
		}
	}
	return out
}

const queues = "queues"

// load makes the classifier of one side.
func load(k *kernel, i int, w *want, shared map[string]*ebpf.Map) (*loadedProgram, error) {
	table, err := classifier.Compile(*w.tree, w.minor, func(path string) (uint64, error) { return w.record.Cgroups[path], nil })
	if err != nil {
		return nil, err
	}
	spec, err := loadClassifier()
	if err != nil {
		return nil, fmt.Errorf("cannot read the eBPF classifier: %w", err)
	}
	highest := uint16(0)
	for _, c := range w.classes {
		highest = max(highest, c.minor)
	}
	w.record.Generation++
	if err := classifier.Configure(spec, classifier.Config{
		Table: table, Rules: len(w.tree.Rules), Generation: w.record.Generation, Default: w.minor(w.tree.Default),
		Control: controlMinor, LinkHeader: w.record.LinkHeader, In: w.in, Classes: uint32(highest) + 1,
		FlowCache: classifier.FlowCacheFor(w.tree.Limit),
	}); err != nil {
		return nil, err
	}
	old := k.sides[i].maps
	spec.Maps[queues].MaxEntries = spec.Maps[classifier.Counters].MaxEntries
	reuse := classifier.Reuse(spec, old, shared, sameRules(k.sides[i].record, &w.record))
	l := &loadedProgram{}
	queueMap, closeQueues, err := w.queues(k, i, spec, reuse)
	if err != nil {
		return nil, err
	}
	defer closeQueues()
	if queueMap != nil {
		reuse[queues] = queueMap
	}
	l.fresh = w.record.Token != 0 && (k.sides[i].record == nil || k.sides[i].record.Token != w.record.Token)
	set := map[string]any{"qdisc_major": uint32(major), "token": w.record.Token}
	w.record.IFB = 0
	if i == ingress {
		w.record.IFB = k.sides[i].qdisc.Attrs().Index
		set["redirect_ifindex"] = uint32(w.record.IFB)
	}
	if err := classifier.SetVariables(spec, set); err != nil {
		return nil, err
	}
	coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: reuse})
	if err != nil {
		return nil, verifierError(err)
	}
	defer coll.Close()
	if err := classifier.Fill(coll, table); err != nil {
		return nil, err
	}
	classifier.CarryOver(coll, old, reuse)
	if err := w.record.Bind(coll.Programs["headgate"]); err != nil {
		return nil, err
	}
	l.program, l.record = coll.DetachProgram("headgate"), w.record
	l.maps = map[string]*ebpf.Map{}
	for name := range coll.Maps {
		l.maps[name] = coll.DetachMap(name)
	}
	return l, nil
}

func verifierError(err error) error {
	var v *ebpf.VerifierError
	if errors.As(err, &v) {
		return fmt.Errorf("the kernel does not accept the eBPF classifier: %w", v)
	}
	return fmt.Errorf("cannot load the eBPF classifier: %w", err)
}

// queues prepares the map of queue states, registered with the departure hook.
// Without the hook (a kernel without BTF, no bpf file system) nothing is marked,
// and queues are bounded by their length alone.
func (w *want) queues(k *kernel, i int, spec *ebpf.CollectionSpec, reuse map[string]*ebpf.Map) (*ebpf.Map, func(), error) {
	none := func() {}
	d, err := openDepartures()
	if err != nil {
		slog.Warn("queues are not measured, and ECN is not marked", "reason", err)
		w.record.Token = 0
		return nil, none, nil
	}
	defer d.close()
	m, kept := reuse[queues]
	if !kept {
		if m, err = ebpf.NewMap(spec.Maps[queues]); err != nil {
			return nil, none, fmt.Errorf("cannot make the map of queues: %w", err)
		}
		none = func() { m.Close() }
	}
	if err := w.initQueues(m, uint32(k.sides[i].qdisc.Attrs().Index)); err != nil {
		return nil, none, err
	}
	if !kept || !d.knows(w.record.Token) {
		if w.record.Token, err = d.register(m); err != nil {
			return nil, none, err
		}
	}
	return m, none, nil
}

// initQueues tells each class's queue its device, and what its bytes take at the
// ceiling until that is measured.
func (w *want) initQueues(m *ebpf.Map, ifindex uint32) error {
	for _, c := range w.classes {
		var q queue
		if err := m.Lookup(uint32(c.minor), &q); err == nil && q.Ifindex == ifindex {
			continue
		}
		q = queue{Ifindex: ifindex, ServicePSByte: 1e12 / max(1, c.htb.Ceil)}
		if err := m.Put(uint32(c.minor), q); err != nil {
			return fmt.Errorf("cannot prepare the queue of %s: %w", c.path, err)
		}
	}
	return nil
}

var _ = group.HTB
