package quantum

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/nl"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/attach"
	"headgate.dev/headgate/shaper/classifier"
)

// transition is the transition from the actual state of a device to a plan.
type transition struct {
	dev      *attach.Device
	settings settings
	sides    [2]sideTransition
	// virtualTime is for tests: the program reads the time from skb->tstamp.
	virtualTime bool
}

type sideTransition struct {
	attach.Direction
	record  classifier.Record
	changes []shaper.Change // empty if the side has the desired state
	// keep means that the program and the state of the algorithm stay, and only the record
	// changes, because only the other direction differs.
	keep bool
}

func newTransition(d *attach.Device, p shaper.Plan) (*transition, error) {
	m := &transition{dev: d, settings: settings{p.Quantum, d.Link.Attrs().MTU}}
	if err := check(p, m.settings); err != nil {
		return nil, fmt.Errorf("device %s: %w", d.Name(), err)
	}
	var blocked []string
	for i, dir := range attach.Directions(p) {
		s, have := &m.sides[i], &d.Sides[i]
		s.Direction = dir
		switch {
		case dir.Tree != nil:
			blocked = append(append(blocked, d.Blocked...), have.Before...)
			if err := s.setDesired(d, have, p, m.settings); err != nil {
				return nil, err
			}
		case have.Program != 0:
			s.changes = []shaper.Change{{Verb: "remove", Object: dir.String() + " shaping"}}
		}
	}
	return m, d.Foreign(blocked)
}

// setDesired computes the desired state of the side.
func (s *sideTransition) setDesired(d *attach.Device, have *attach.Side, p shaper.Plan, set settings) error {
	var old classifier.Record
	if have.Record != nil {
		old = *have.Record
	}
	ids, err := classifier.ClassIDs(*s.Tree, old.Classes, firstMinor, lastMinor)
	if err != nil {
		return err
	}
	cgroups, err := classifier.FindCgroups(*s.Tree)
	if err != nil {
		return err
	}
	linkHeader, err := d.LinkHeader()
	if err != nil {
		return err
	}
	s.record = classifier.Record{
		Engine: group.Quantum, Build: classifier.Build(_PolicerBytes), Plan: p, In: s.In, Classes: ids, Cgroups: cgroups,
		Clsact: d.NeedsClsact(), Generation: old.Generation, LinkHeader: linkHeader, Options: set.record(),
	}
	if have.Record == nil || !have.Record.Equal(s.record) {
		s.changes = s.compare(have.Record)
		s.keep = have.Record != nil && have.Record.SameProgram(s.record) && group.EqualTrees(have.Record.Tree(), s.Tree)
	}
	return nil
}

// compare describes the differences from the old record; the result is never empty.
func (s *sideTransition) compare(old *classifier.Record) (out []shaper.Change) {
	dir := s.String()
	add := func(verb, object, format string, args ...any) {
		out = append(out, shaper.Change{Verb: verb, Object: dir + " " + object, Detail: fmt.Sprintf(format, args...)})
	}
	had := map[string]group.Node{}
	switch {
	case old == nil:
		add("add", "limit", "%v, %s", s.Tree.Limit, s.record.Plan.Quantum.Describe())
	default:
		for _, n := range old.Tree().Nodes {
			had[n.Path] = n
		}
		if was := old.Tree().Limit; was != s.Tree.Limit {
			add("change", "limit", "%v -> %v", was, s.Tree.Limit)
		}
		if !bytes.Equal(old.Options, s.record.Options) {
			add("change", "options", "%s -> %s", optionsOf(old), optionsOf(&s.record))
		}
	}
	for _, n := range s.Tree.Nodes {
		was, known := had[n.Path]
		delete(had, n.Path)
		switch {
		case !known:
			add("add", "group "+n.Path, "guarantee %v", n.Guarantee)
		case was.Guarantee != n.Guarantee:
			add("change", "group "+n.Path, "guarantee %v -> %v", was.Guarantee, n.Guarantee)
		}
	}
	switch {
	case old == nil:
		add("add", "rules", "%d, and the default", len(s.Tree.Rules))
	case !classifier.SameRules(old, &s.record):
		add("change", "rules", "%d, and the default", len(s.Tree.Rules))
	}
	if old != nil {
		for _, n := range old.Tree().Nodes {
			if _, gone := had[n.Path]; gone {
				add("remove", "group "+n.Path, "")
			}
		}
	}
	if len(out) == 0 {
		add("change", "record", "the configuration that the kernel keeps")
	}
	return out
}

// optionsOf describes the options of a record.
func optionsOf(r *classifier.Record) string {
	var s settings
	if err := json.Unmarshal(r.Options, &s); err != nil {
		return fmt.Sprintf("%q", r.Options)
	}
	return fmt.Sprintf("%s, MTU %d", s.Describe(), s.MTU)
}

func (m *transition) changes() []shaper.Change {
	out := []shaper.Change{}
	for _, s := range m.sides {
		out = append(out, s.changes...)
	}
	return out
}

func (m *transition) empty() bool { return len(m.changes()) == 0 }

// make executes the transition: it loads programs, which has no effect yet, and attaches them
// with one batch.
func (m *transition) make(c *nl.Conn) error {
	var made [2]*classifier.Program
	defer func() {
		for _, p := range made {
			if p != nil {
				p.Close()
			}
		}
	}()
	held, err := m.dev.Snapshot()
	if err != nil {
		return err
	}
	defer held.Close()
	if err := m.rewriteRecords(); err != nil {
		return errors.Join(err, m.restoreRecords())
	}
	for i, s := range m.sides {
		if len(s.changes) > 0 && s.Tree != nil && !s.keep {
			if made[i], err = m.load(i, m.dev.Shared(made[:]...)); err != nil {
				return errors.Join(err, m.restoreRecords())
			}
		}
	}
	shared, next := m.dev.Shared(made[:]...), m.records(made)
	assignAgain, err := m.dev.DeleteReusedAssignments(shared, next...)
	if err == nil {
		err = c.Execute(m.batch(made))
	}
	if err != nil {
		return m.undo(err, held, assignAgain)
	}
	for _, p := range made {
		if p != nil {
			p.AddLateCounts()
		}
	}
	if m.dev.HasStaleAssignments(next...) {
		return m.dev.DeleteStaleAssignments(shared, next...)
	}
	return nil
}

// rewriteRecords updates the records of programs that stay, or requests a new program if the
// record does not fit.
func (m *transition) rewriteRecords() error {
	for i := range m.sides {
		s := &m.sides[i]
		if !s.keep {
			continue
		}
		fits, err := s.record.Rewrite(m.dev.Sides[i].Maps)
		if err != nil {
			return err
		}
		s.keep = fits
	}
	return nil
}

// restoreRecords undoes rewriteRecords.
func (m *transition) restoreRecords() (failed error) {
	for i := range m.sides {
		if have := &m.dev.Sides[i]; m.sides[i].keep {
			_, err := have.Record.Rewrite(have.Maps)
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// records returns the records that the sides will have.
func (m *transition) records(made [2]*classifier.Program) (out []*classifier.Record) {
	for i, s := range m.sides {
		switch {
		case made[i] != nil:
			out = append(out, &made[i].Record)
		case len(s.changes) == 0 || s.keep:
			out = append(out, m.dev.Sides[i].Record)
		}
	}
	return out
}

// batch returns one netlink message with all changes that affect packets.
func (m *transition) batch(made [2]*classifier.Program) *nl.Batch {
	var b nl.Batch
	m.dev.AddClsact(&b)
	for i, s := range m.sides {
		switch {
		case made[i] != nil:
			m.dev.Attach(&b, i, made[i].Program)
		case len(s.changes) > 0 && !s.keep:
			m.dev.Detach(&b, i)
		}
	}
	return &b
}

// undo restores the previous programs after a batch that failed in part, and returns an error
// that describes the state in force.
func (m *transition) undo(cause error, held *attach.Snapshot, assignAgain func() error) error {
	dev := m.dev.Name()
	err := with(dev, func(c *nl.Conn, now *attach.Device) error {
		var b nl.Batch
		held.Restore(&b, now, func(side int, p *ebpf.Program) { now.Attach(&b, side, p) })
		return errors.Join(c.Execute(&b), assignAgain(), m.restoreRecords())
	})
	switch {
	case errors.Is(err, shaper.ErrNoDevice):
		return fmt.Errorf("%w (removed during the change)", err)
	case err != nil:
		return fmt.Errorf("device %s: %w; cannot roll back completely: %w: apply again, or run \"headgate clear --dev %s\"", dev, cause, err, dev)
	}
	return fmt.Errorf("device %s was rolled back: %w", dev, cause)
}

// The engine's own maps.
const (
	quantumMap = "quantum"
	resetsMap  = "resets_asked"
	dropsMap   = "drops"
)

// load loads the policer of one side.
func (m *transition) load(i int, shared map[string]*ebpf.Map) (*classifier.Program, error) {
	s, have := &m.sides[i], &m.dev.Sides[i]
	minor := func(node int) uint16 { return s.record.Class(s.Tree.Nodes[node]) }
	table, err := classifier.Compile(*s.Tree, minor, func(path string) (uint64, error) { return s.record.Cgroups[path], nil })
	if err != nil {
		return nil, err
	}
	spec, err := classifier.Spec(_PolicerBytes)
	if err != nil {
		return nil, fmt.Errorf("cannot read the eBPF policer: %w", err)
	}
	s.record.Generation++
	if err := classifier.Configure(spec, classifier.Config{
		Table: table, Rules: len(s.Tree.Rules), Generation: s.record.Generation, Default: minor(s.Tree.Default),
		Control: controlMinor, LinkHeader: s.record.LinkHeader, In: s.In, Classes: lastMinor + 1,
		FlowCache: classifier.FlowCacheFor(s.Tree.Limit), Plan: s.record.Plan,
	}); err != nil {
		return nil, err
	}
	if err := m.configure(spec, i); err != nil {
		return nil, err
	}
	own := []string{dropsMap}
	if have.Record != nil && have.Record.Build == s.record.Build {
		own = append(own, quantumMap, resetsMap) // only the same build knows their layout
	}
	from := classifier.Inherit(spec, have.Maps, shared, classifier.SameRules(have.Record, &s.record), own...)
	p, err := classifier.Load(spec, table, s.record, have.Record, from)
	if err != nil {
		return nil, err
	}
	minors, values := classifier.AllowancesOf(*s.Tree, minor, rootMinor, nil)
	if err := classifier.PutAllowances(p.Maps[classifier.Allowances], minors, values); err != nil {
		p.Close()
		return nil, err
	}
	if err := classifier.ZeroNew(p.Maps[dropsMap], s.record, have.Record); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// configure sets the constants of the algorithm.
func (m *transition) configure(spec *ebpf.CollectionSpec, i int) error {
	s := &m.sides[i]
	cfg, err := m.settings.config(*s.Tree)
	if err != nil {
		return err
	}
	var configured [maxGroups]uint64
	begin := ^uint64(0)
	last := m.dev.Sides[i].Record
	for node, bytes := range cfg.Configured {
		id := s.record.Class(s.Tree.Nodes[node])
		configured[id-firstMinor] = bytes
		if last != nil && last.Class(s.Tree.Nodes[node]) == id {
			begin &^= 1 << (id - firstMinor)
		}
	}
	set := map[string]any{
		"limit_bytes": cfg.Limit, "step_bytes": cfg.Step, "mark_bytes": 2 * cfg.MTU, "configured_bytes": configured, "begin_groups": begin,
		"quantum_ns": uint64(m.settings.quantum()), "overdraft": flag(cfg.Overdraft), "egress": flag(i == attach.Egress),
		"clock_is_tstamp": flag(m.virtualTime),
	}
	if i == attach.Egress {
		set["drop_action"] = uint32(actStolen)
	}
	return classifier.SetVariables(spec, set)
}

const actStolen = 4 // TC_ACT_STOLEN (uapi/linux/pkt_cls.h)

func flag(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}
