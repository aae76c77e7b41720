package htb

import (
	"fmt"
	"slices"

	"github.com/cilium/ebpf"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/nl"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/classifier"
)

// transition is the transition from the actual state of a device to a plan.
type transition struct {
	k       *kernel
	desired [2]desiredSide
	sides   [2]sideTransition
	// setChain and removeChain are set if the nftables chain that forwards to the IFB must
	// change.
	setChain, removeChain bool
}

type sideTransition struct {
	set, remove   []step
	program       bool           // a new classifier is needed
	record        bool           // only a new record for the present classifier
	newClassTimes bool           // the times per byte in the program's maps differ
	rules         *shaper.Change // set if the classification of packets changes
	gone          bool           // the side has Headgate's objects and should have none
	sizes         []step         // for the device's super-packet limits
	down          bool           // the IFB is down and drops all packets
}

func newTransition(k *kernel, p shaper.Plan) (*transition, error) {
	w, err := desiredSides(k, p)
	if err != nil {
		return nil, err
	}
	if err := blockers(k, w); err != nil {
		return nil, err
	}
	m := &transition{k: k, desired: w}
	m.setChain, m.removeChain = k.chainTransition(w[ingress])
	for i := range m.sides {
		m.sides[i] = newSideTransition(k.sides[i], w[i])
		if s, ok := k.sizeStep(i, w[i].record.Sized); ok {
			m.sides[i].sizes = append(m.sides[i].sizes, s)
		}
		if ifb := k.sides[ingress].qdisc; i == ingress && ifb != nil {
			m.sides[i].down = w[i].Tree != nil && !isUp(ifb)
			if w[i].Tree == nil {
				m.sides[i].gone = true // the IFB may be a leftover of a killed process
			}
		}
	}
	return m, nil
}

func newSideTransition(s side, w desiredSide) (m sideTransition) {
	if w.Tree == nil {
		m.gone = s.Program != 0 || s.tree.present
		return m
	}
	m.set, m.remove = treeSteps(w, s.tree)
	if !classifier.SameRules(s.Record, &w.record) {
		m.rules = &shaper.Change{Verb: "change", Object: w.String() + " rules", Detail: fmt.Sprintf("%d, and the default", len(w.Tree.Rules))}
		if s.Record == nil {
			m.rules.Verb = "add"
		}
	}
	m.program = s.Record == nil || s.programStale() || !s.Record.SameProgram(w.record)
	m.record = !m.program && !s.Record.Equal(w.record)
	m.newClassTimes = !m.program && w.classTimesDiffer(s.Maps)
	return m
}

// programStale reports whether the program's constants are no longer valid: another program removed
// the IFB that it redirects to, or the departure hook that knows its token.
func (s side) programStale() bool {
	if s.Record.IFB != 0 && (s.qdisc == nil || s.qdisc.Attrs().Index != s.Record.IFB) {
		return true
	}
	return s.Record.Token != 0 && !tokenRegistered(s.Record.Token)
}

func (m *transition) empty() bool {
	if m.setChain || m.removeChain {
		return false
	}
	for _, s := range m.sides {
		if s.program || s.record || s.newClassTimes || s.gone || s.down || len(s.set)+len(s.remove)+len(s.sizes) > 0 {
			return false
		}
	}
	return true
}

// changes describes the transition, without what follows from other changes.
func (m *transition) changes() []shaper.Change {
	out, derived, chain := []shaper.Change{}, []shaper.Change{}, m.chainChanges()
	add := func(all []step) {
		for _, st := range all {
			switch {
			case st.change == nil:
			case st.derived:
				derived = append(derived, st.change())
			default:
				out = append(out, st.change())
			}
		}
	}
	for i, s := range m.sides {
		if s.down {
			out = append(out, shaper.Change{
				Verb: "change", Object: m.desired[i].String() + " device " + m.k.sides[i].qdisc.Attrs().Name, Detail: "down -> up",
			})
		}
		add(s.sizes)
		add(s.set)
		if s.rules != nil {
			out = append(out, *s.rules)
		}
		add(s.remove)
		if s.gone {
			out = append(out, shaper.Change{Verb: "remove", Object: [2]string{"egress", "ingress"}[i] + " shaping"})
		}
		if (s.program || s.record || s.newClassTimes) && len(s.set)+len(s.remove) == 0 && s.rules == nil && (i != ingress || len(chain) == 0) {
			dir := m.desired[i].String()
			switch left := m.leaves(i); {
			case left != "":
				out = append(out, shaper.Change{Verb: "change", Object: dir + " record", Detail: left})
			case s.program:
				derived = append(derived, shaper.Change{Verb: "change", Object: dir + " classifier", Detail: "the program is loaded again"})
			default:
				derived = append(derived, shaper.Change{Verb: "change", Object: dir + " record", Detail: "the configuration that the kernel keeps"})
			}
		}
	}
	if out = append(out, chain...); len(out) > 0 {
		return out
	}
	return derived
}

// make executes the transition, or rolls it back. Programs and maps are created first, without
// any effect; then one batch makes all changes, and unused objects are removed after it.
func (m *transition) make(c *nl.Conn) error {
	old, err := m.hold()
	if err != nil {
		return err
	}
	defer old.Close()
	var made [2]*classifier.Program
	defer func() {
		for _, p := range made {
			if p != nil {
				p.Close()
			}
		}
	}()
	if err := m.carryOut(c, old, &made); err != nil {
		return m.undo(err, old, made)
	}
	for _, p := range made {
		if p != nil {
			p.AddLateCounts()
		}
	}
	if m.sides[ingress].gone {
		if err := m.k.removeIFB(); err != nil {
			return err
		}
	}
	for i, s := range m.k.sides {
		if t := s.token(); t != 0 && (m.sides[i].gone || made[i] != nil && made[i].Record.Token != t) {
			forget(t)
		}
	}
	if next := m.records(made); m.k.HasStaleAssignments(next...) {
		return m.k.DeleteStaleAssignments(m.k.Shared(made[:]...), next...)
	}
	return nil
}

// carryOut executes the steps that undo can roll back.
func (m *transition) carryOut(c *nl.Conn, old *previousState, made *[2]*classifier.Program) error {
	if err := needClassFilter(); err != nil {
		return err
	}
	if err := m.rewriteClassTimes(); err != nil {
		return err
	}
	if err := m.rewriteRecords(); err != nil {
		return err
	}
	if m.sides[ingress].program && m.k.sides[ingress].qdisc == nil {
		if err := m.k.addIFB(c); err != nil {
			return err
		}
	}
	if err := m.load(made); err != nil {
		return err
	}
	var err error
	if old.assign, err = m.k.DeleteReusedAssignments(m.k.Shared(made[:]...), m.records(*made)...); err != nil {
		return err
	}
	if err := c.Execute(m.batch(*made)); err != nil {
		return err
	}
	return m.moveChain()
}

func (m *transition) load(made *[2]*classifier.Program) (err error) {
	for i, s := range m.sides {
		if !s.program {
			continue
		}
		if made[i], err = load(m.k, i, &m.desired[i], m.k.Shared(made[:]...)); err != nil {
			return err
		}
	}
	return nil
}

// token returns the token under which the departure hook knows the side, or 0.
func (s side) token() uint32 {
	if s.Record == nil {
		return 0
	}
	return s.Record.Token
}

// records returns the records that the sides will have.
func (m *transition) records(made [2]*classifier.Program) []*classifier.Record {
	var out []*classifier.Record
	for i, s := range m.sides {
		switch {
		case made[i] != nil:
			out = append(out, &made[i].Record)
		case !s.gone:
			out = append(out, m.k.sides[i].Record)
		}
	}
	return out
}

// rewriteRecords updates the records of programs that stay, or requests a new program if the
// record does not fit. It runs before the batch: if the process dies in between, the old rates
// are in force, and Observe reports by the new record that they are not the desired ones.
func (m *transition) rewriteRecords() error {
	for i := range m.sides {
		if !m.sides[i].record {
			continue
		}
		fits, err := m.desired[i].record.Rewrite(m.k.sides[i].Maps)
		if err != nil {
			return err
		}
		m.sides[i].program = !fits
	}
	return nil
}

// batch returns one message with all changes that affect packets: both trees, then the filters
// that send packets to them, then the removal of unused objects.
func (m *transition) batch(made [2]*classifier.Program) *nl.Batch {
	var b nl.Batch
	if made[egress] != nil || made[ingress] != nil {
		m.k.AddClsact(&b)
	}
	for i, s := range m.sides {
		if s.down {
			b.SetUp(m.at(i), ifbAlias(m.k.Name())) // an older version may not have set the alias
		}
		for _, st := range s.sizes {
			st.add(&b, m.k.Index())
		}
		for _, st := range s.set {
			st.add(&b, m.at(i))
		}
	}
	for i, s := range m.sides {
		if made[i] != nil {
			m.k.attachFilter(&b, i, made[i].Program, redirectsTo(made[i].Record))
		}
		if s.gone {
			m.k.Detach(&b, i)
		}
	}
	for i, s := range m.sides {
		for _, st := range s.remove {
			st.add(&b, m.at(i))
		}
		if s.gone && i == egress && m.k.sides[i].tree.present {
			b.DeleteQdisc(m.at(i), nl.MakeHandle(major, 0), nl.Root)
		}
	}
	return &b
}

// at returns the index of the device that has a side's tree.
func (m *transition) at(i int) int { return m.k.sides[i].qdisc.Attrs().Index }

// load loads the classifier of one side.
func load(k *kernel, i int, w *desiredSide, shared map[string]*ebpf.Map) (p *classifier.Program, err error) {
	defer func() {
		if token := w.record.Token; err != nil && token != k.sides[i].token() {
			forget(token) // no other program uses it
		}
	}()
	table, err := classifier.Compile(*w.Tree, w.minor, func(path string) (uint64, error) { return w.record.Cgroups[path], nil })
	if err != nil {
		return nil, err
	}
	spec, err := classifier.Spec(_ClassifierBytes)
	if err != nil {
		return nil, fmt.Errorf("cannot read the eBPF classifier: %w", err)
	}
	highest := uint16(0)
	for _, c := range w.classes {
		if c.client == 0 {
			highest = max(highest, c.minor&^largeFrames)
		}
	}
	w.record.Generation++
	if err := classifier.Configure(spec, classifier.Config{
		Table: table, Rules: len(w.Tree.Rules), Generation: w.record.Generation, Default: w.minor(w.Tree.Default),
		Control: controlMinor, LinkHeader: w.record.LinkHeader, In: w.In, Classes: uint32(highest) + 1, ClientRanges: w.record.Places,
		FlowCache: classifier.FlowCacheFor(w.Tree.Limit), Plan: w.record.Plan,
	}); err != nil {
		return nil, err
	}
	s := k.sides[i]
	all := max(spec.Maps[classifier.Counters].MaxEntries, classifier.LastPlace(w.record.Places)) // groups and clients
	spec.Maps[queues].MaxEntries, spec.Maps[classTimesMap].MaxEntries = all, all
	own := []string{queues}
	if classifier.SamePlaces(s.Record, &w.record) {
		own = append(own, classifier.ClientMaps...)
	}
	from := classifier.Inherit(spec, s.Maps, shared, classifier.SameRules(s.Record, &w.record), own...)
	knows := from.AllOrNone(classifier.ClientMaps) // clients that have places
	// Queue states are measured again quickly, and may have another meaning in another layout.
	delete(from.Migrate, queues)
	queueMap, closeQueues, err := w.queues(k, i, spec, from.Reuse)
	if err != nil {
		return nil, err
	}
	defer closeQueues()
	if queueMap != nil {
		from.Reuse[queues] = queueMap
	}
	set := map[string]any{"token": w.record.Token, "bound_wait": w.options.BoundWait, "max_frame_bytes": w.options.MaxFrame}
	if nested(w.Tree) {
		set["nested"] = uint8(1)
		spec.Maps[levels].MaxEntries = spec.Maps[classifier.Counters].MaxEntries
	}
	if len(w.record.Places) > 0 {
		set["use_clients"] = uint8(1)
	}
	w.record.IFB = 0
	if i == ingress {
		w.record.IFB = s.qdisc.Attrs().Index
		set["redirect_ifindex"] = uint32(w.record.IFB)
		if w.record.Forward {
			set["forwards"] = uint8(1)
		} else if k.byAction() {
			set["pass_verdict"] = int32(0) // no match
			set["drop_class"] = uint32(dropMinor)
		}
	}
	if err := classifier.SetVariables(spec, set); err != nil {
		return nil, err
	}
	p, err = classifier.Load(spec, table, w.record, s.Record, from)
	if err != nil {
		return nil, err
	}
	err = w.setClassTimes(p.Maps)
	if err == nil && len(w.record.Places) > 0 && !knows {
		err = classifier.FillClients(p.Maps, *w.Tree, w.record, w.above)
	}
	if err == nil && nested(w.Tree) {
		err = w.setLevels(p.Maps[levels])
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// nested reports whether some group has child groups or clients.
func nested(t *group.Tree) bool {
	return slices.ContainsFunc(t.Nodes, func(n group.Node) bool { return !n.Leaf || !n.Clients.IsZero() })
}
