package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"headgate/config"
	"headgate/group"
	"headgate/shaper"
)

// machine is a kernel and an engine in memory, and an agent on it. It is used
// inside a synctest bubble, where time is virtual.
type machine struct {
	*testing.T
	files    string // what the agent reads
	devices  []Device
	ids      map[string]uint64 // cgroups
	watched  []string
	events   chan Event
	reload   chan struct{}
	pending  []string
	unknown  []string             // what is wanted of devices or patterns that is not understood
	force    map[int]*shaper.Plan // in force, by device index
	drift    map[int]bool
	foreign  map[int]bool
	assigned map[string]string // groups by "dev connection"
	full     string            // a device whose table takes no more
	refused  shaper.Conn       // a connection that it does not take
	denied   bool
	applied  []string // "time dev", each Apply that wrote
	tried    []string // each Apply
	cleared  []string
	notified []string
	told     []string // what is not as it is wanted, each time that it was told
	log      bytes.Buffer
	start    time.Time
	dir      string
	turn     atomic.Int64 // for the race detector: it does not see that virtual time orders what is done
}

func newMachine(t *testing.T, files string) *machine {
	return &machine{
		T: t, files: files, ids: map[string]uint64{}, events: make(chan Event, 64), reload: make(chan struct{}, 1),
		force: map[int]*shaper.Plan{}, drift: map[int]bool{}, foreign: map[int]bool{}, assigned: map[string]string{}, start: time.Now(), dir: t.TempDir(),
	}
}

// run starts an agent; what it returns ends it.
func (m *machine) run() (stop func() error) {
	m.Helper()
	claim, err := NewClaim(m.dir, []string{"files"})
	if err != nil {
		m.Fatal(err)
	}
	a := &Agent{
		Load:    func() (config.Set, error) { return config.Parse("files", []byte(m.files)) },
		Engines: map[group.Engine]shaper.Shaper{group.HTB: fakeEngine{m}},
		Kernel:  fakeKernel{m}, Reload: m.reload,
		Lock: func() (func(), error) { return func() {}, nil }, Pending: func() []string { m.turn.Add(1); return m.pending },
		Unknown: func() []string { m.turn.Add(1); return m.unknown },
		Claim:   claim, Beat: 10 * time.Second,
		Notify: func(s string) { m.turn.Add(1); m.notified = append(m.notified, s) },
		Told: func(troubles map[string]string, byHand []string) {
			m.turn.Add(1)
			m.told = append(m.told, fmt.Sprint(troubles, byHand))
		},
		Log: slog.New(slog.NewTextHandler(&m.log, nil)),
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

// after lets time pass.
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

// meddle takes away what is in force, as another program would.
func (m *machine) meddle(index int) {
	m.drift[index] = true
	m.event(Event{Removed: index})
}

// limit is what is in force on a device, "" if nothing is.
func (m *machine) limit(index int) string {
	if p := m.force[index]; p != nil && !m.drift[index] {
		return p.Out.Limit.String()
	}
	return ""
}

func (m *machine) want(index int, limit string) {
	m.Helper()
	if got := m.limit(index); got != limit {
		m.Errorf("after %v device %d has %q in force, want %q\n%s", time.Since(m.start), index, got, limit, m.log.String())
	}
}

// wantTold: that was told last, which "" says that all is as it should be.
func (m *machine) wantTold(text string) {
	m.Helper()
	if got := m.told[len(m.told)-1]; text == "" && got != "map[] []" || !strings.Contains(got, text) {
		m.Errorf("after %v it tells %s, want %q", time.Since(m.start), got, text)
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
	return nil, errors.New("not asked for")
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
	if old != nil && mark(*old) == mark(p) && !e.drift[d.Index] {
		return nil, nil
	}
	e.applied = append(e.applied, when)
	e.force[d.Index], e.drift[d.Index] = &p, false
	return []shaper.Change{{Verb: "add", Object: "out limit"}}, nil
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
			return errors.New("no room")
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
