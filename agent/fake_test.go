package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/agent/reserved"
	"headgate.dev/headgate/config"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// machine is a kernel and an engine in memory, with an agent. A test uses it inside a synctest
// bubble, where time is virtual.
type machine struct {
	*testing.T
	files      string       // the agent's configuration
	origin     group.Origin // of the groups in it
	devices    []Device
	ids        map[string]uint64 // cgroups
	watched    []string
	events     chan Event
	reload     chan struct{}
	pending    []string
	unknown    []string             // devices and patterns whose documents the agent cannot parse
	force      map[int]*shaper.Plan // applied plans, by device index
	drift      map[int]bool
	foreign    map[int]bool
	assigned   map[string]string // groups by "dev connection"
	full       string            // a device whose table is full
	refused    shaper.Conn       // a connection that Assign rejects
	denied     bool
	applied    []string // "time dev" of each Apply that made changes
	tried      []string // "time dev" of each Apply
	cleared    []string
	notified   []string
	lastReport []string          // each report of the agent
	granted    *reserved.Desired // reservations; nil if the agent has no controllers
	newLimits  chan struct{}
	refresh    chan struct{}
	limits     map[string]unit.Rate // limits that were set, by path
	adjusted   []string             // the limits of each Adjust
	adjustErr  error
	lacking    map[string]string // the last report of reservations
	log        bytes.Buffer
	start      time.Time
	dir        string
	turn       atomic.Int64 // orders accesses for the race detector, which does not know that virtual time orders them
}

func newMachine(t *testing.T, files string) *machine {
	return &machine{
		T: t, files: files, ids: map[string]uint64{}, events: make(chan Event, 64), reload: make(chan struct{}, 1),
		force: map[int]*shaper.Plan{}, drift: map[int]bool{}, foreign: map[int]bool{}, assigned: map[string]string{}, limits: map[string]unit.Rate{},
		newLimits: make(chan struct{}, 1), refresh: make(chan struct{}, 1), start: time.Now(), dir: t.TempDir(),
	}
}

// run starts an agent and returns a function that stops it.
func (m *machine) run() (stop func() error) {
	m.Helper()
	claim, err := NewClaim(m.dir, []string{"files"})
	if err != nil {
		m.Fatal(err)
	}
	a := &Agent{
		Load:    m.load,
		Engines: map[group.Engine]shaper.Shaper{group.HTB: fakeEngine{m}},
		Kernel:  fakeKernel{m}, Reload: m.reload,
		Lock: func() (func(), error) { return func() {}, nil }, Pending: func() []string { m.turn.Add(1); return m.pending },
		Unknown:   func() []string { m.turn.Add(1); return m.unknown },
		StateFile: claim, WatchdogInterval: 10 * time.Second,
		Notify: func(s string) { m.turn.Add(1); m.notified = append(m.notified, s) },
		Report: func(errs map[string]string, byHand []string) {
			m.turn.Add(1)
			m.lastReport = append(m.lastReport, fmt.Sprint(errs, byHand))
		},
		Log: slog.New(slog.NewTextHandler(&m.log, nil)),
	}
	if m.granted != nil {
		a.Reservations = func() reserved.Desired { m.turn.Add(1); return *m.granted }
		a.Adjusted, a.Refresh = m.newLimits, m.refresh
		a.Limits = func() map[string]unit.Rate {
			m.turn.Add(1)
			out := map[string]unit.Rate{}
			for _, r := range m.granted.Reservations {
				out[r.Key] = r.Limit
			}
			return out
		}
		a.Latest = func() config.Set { set, _ := m.load(); return set }
		a.ReportReservations = func(errs map[string]string) { m.turn.Add(1); m.lacking = errs }
	}
	ctx, cancel := context.WithCancel(m.Context())
	var result error
	ended := make(chan struct{})
	go func() { result = a.Run(ctx); close(ended) }()
	synctest.Wait()
	return func() error {
		cancel()
		<-ended
		claim.Close()
		return result
	}
}

func (m *machine) load() (config.Set, error) {
	set, err := config.Parse("files", []byte(m.files))
	for _, i := range set.Interfaces {
		for n := range i.Out.Groups {
			i.Out.Groups[n].Origin = m.origin
		}
	}
	return set, err
}

// after advances time.
func (m *machine) after(d time.Duration) {
	m.turn.Add(1)
	time.Sleep(d)
	synctest.Wait()
}

func (m *machine) event(e Event) { m.events <- e; synctest.Wait() }

func (m *machine) add(d Device) { m.devices = append(m.devices, d); m.event(Event{}) }

func (m *machine) remove(index int) {
	for i, d := range m.devices {
		if d.Index == index {
			m.devices = append(m.devices[:i:i], m.devices[i+1:]...)
			break
		}
	}
	delete(m.force, index)
	m.event(Event{})
}

// meddle removes the applied plan, as another program would.
func (m *machine) meddle(index int) {
	m.drift[index] = true
	m.event(Event{Removed: index})
}

// limit returns the limit of a device's applied plan, or "".
func (m *machine) limit(index int) string {
	if p := m.force[index]; p != nil && !m.drift[index] {
		return p.Out.Limit.String()
	}
	return ""
}

func (m *machine) desired(index int, limit string) {
	m.Helper()
	if got := m.limit(index); got != limit {
		m.Errorf("after %v device %d has the limit %q, want %q\n%s", time.Since(m.start), index, got, limit, m.log.String())
	}
}

// wantTold checks that the last report contains text; "" means an empty report.
func (m *machine) wantTold(text string) {
	m.Helper()
	if got := m.lastReport[len(m.lastReport)-1]; text == "" && got != "map[] []" || !strings.Contains(got, text) {
		m.Errorf("after %v the last report is %s, want %q", time.Since(m.start), got, text)
	}
}

func (m *machine) wantLog(text string, times int) {
	m.Helper()
	if n := strings.Count(m.log.String(), text); n != times {
		m.Errorf("after %v the log has %q %d times, want %d\n%s", time.Since(m.start), text, n, times, m.log.String())
	}
}

type fakeKernel struct{ *machine }

func (k fakeKernel) Devices() ([]Device, error) {
	k.turn.Add(1)
	return k.devices, nil
}
func (k fakeKernel) Cgroup(path string) (uint64, bool) {
	id, ok := k.ids[path]
	return id, ok
}
func (k fakeKernel) Watch(cgroups []string) error { k.watched = cgroups; return nil }
func (k fakeKernel) Events() <-chan Event         { return k.events }

type fakeEngine struct{ *machine }

func (e fakeEngine) find(dev string) (Device, error) {
	for _, d := range e.devices {
		if d.Name == dev {
			return d, nil
		}
	}
	return Device{}, fmt.Errorf("device %s: %w", dev, shaper.ErrNoDevice)
}

func (e fakeEngine) Observe(dev string) (shaper.State, error) {
	d, err := e.find(dev)
	if err != nil {
		return shaper.State{}, err
	}
	if e.denied {
		return shaper.State{}, shaper.ErrPermission
	}
	p := e.force[d.Index]
	if p == nil {
		return shaper.State{}, shaper.ErrNotShaped
	}
	s := shaper.State{Dev: dev, Plan: *p}
	if e.drift[d.Index] {
		s.Drift = []shaper.Change{{Verb: "add", Object: "out limit"}}
	}
	return s, nil
}

func (e fakeEngine) Diff(shaper.Plan) ([]shaper.Change, error) {
	return nil, errors.New("not implemented")
}

func (e fakeEngine) Apply(p shaper.Plan) ([]shaper.Change, error) {
	d, err := e.find(p.Dev)
	if err != nil {
		return nil, err
	}
	when := fmt.Sprint(time.Since(e.start).Round(time.Second), " ", p.Dev)
	e.tried = append(e.tried, when)
	if e.foreign[d.Index] {
		return nil, fmt.Errorf("device %s %w: root qdisc tbf 1:", p.Dev, shaper.ErrForeign)
	}
	old := e.force[d.Index]
	if old != nil && planHash(*old) == planHash(p) && !e.drift[d.Index] {
		return nil, nil
	}
	e.applied = append(e.applied, when)
	e.force[d.Index], e.drift[d.Index] = &p, false
	return []shaper.Change{{Verb: "add", Object: "out limit"}}, nil
}

// Adjust sets the limits of the groups of a plan that is in force.
func (e fakeEngine) Adjust(dev string, limits map[string]unit.Rate) error {
	d, err := e.find(dev)
	if err == nil {
		err = e.adjustErr
	}
	if err != nil {
		return err
	}
	for path, limit := range limits {
		if p := e.force[d.Index]; p == nil || !slices.ContainsFunc(p.Out.Nodes, func(n group.Node) bool { return n.Adjustable && n.Path == path }) {
			return fmt.Errorf("device %s has no group %s", dev, path)
		}
		e.limits[path] = limit
	}
	e.adjusted = append(e.adjusted, fmt.Sprint(dev, limits))
	return nil
}

func (e fakeEngine) Clear(dev string) error {
	e.cleared = append(e.cleared, dev)
	if d, err := e.find(dev); err == nil {
		delete(e.force, d.Index)
	}
	return nil
}

func (e fakeEngine) Assign(dev string, list []shaper.Assignment) error {
	for _, a := range list {
		if dev == e.full || a.Conn == e.refused {
			return errors.New("table is full")
		}
	}
	for _, a := range list {
		e.assigned[fmt.Sprint(dev, " ", a.Conn)] = a.Group
	}
	return nil
}

func (e fakeEngine) Unassign(dev string, list []shaper.Conn) error {
	for _, c := range list {
		if e.assigned[fmt.Sprint(dev, " ", c)] == "" {
			return fmt.Errorf("connection %v is not assigned on %s", c, dev)
		}
		delete(e.assigned, fmt.Sprint(dev, " ", c))
	}
	return nil
}

func (e fakeEngine) Assigned(dev string, c shaper.Conn) (string, error) {
	return e.assigned[fmt.Sprint(dev, " ", c)], nil
}
