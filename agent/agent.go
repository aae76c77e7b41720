package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"headgate/config"
	"headgate/group"
	"headgate/internal/ask"
	"headgate/shaper"
)

// Agent is the loop and what it is tied to.
type Agent struct {
	// Load reads the files.
	Load    func() (config.Set, error)
	Engines map[group.Engine]shaper.Shaper
	Kernel  Kernel
	// Reload asks to read the files again.
	Reload <-chan struct{}
	// Refresh asks to take in what a controller wants now, which Latest says: that, and what the
	// files said when they were read last. What was applied by hand stays.
	Refresh <-chan struct{}
	Latest  func() config.Set
	// Connections are those that were put in groups of a device or pattern, as the document names it;
	// nil is none, ever.
	Connections func(dev string) []shaper.Assignment
	// Unknown are the devices and patterns, as documents name them, of which something is wanted that is
	// not understood: what an agent of another version has put in force there stays. nil is none, ever.
	Unknown func() []string
	// Metered is called with what is in force on each device that has groups, MeterEvery, unless
	// that is 0: at whole seconds of the clock, if that is what it is, so that all hosts speak of
	// the same ones.
	Metered    func(at time.Time, states []shaper.State)
	MeterEvery time.Duration
	// Meter asks for another MeterEvery, which is not 0.
	Meter <-chan time.Duration
	// Told is called with what is not as it is wanted, by device, and with the devices on which that
	// is so because of what was applied there by hand: after a round in which that, or which devices
	// there are, has changed, and after each that took in what is wanted. It may be nil.
	Told func(troubles map[string]string, byHand []string)
	// Lock keeps other processes from changing shaping meanwhile; Pending are the
	// devices whose change waits for confirmation.
	Lock    func() (unlock func(), err error)
	Pending func() []string
	// Claim says to others which devices are ours.
	Claim *Claim
	// Notify speaks to the service manager, which wants to hear every Beat, if that
	// is not 0, that the loop runs.
	Notify func(state string)
	Beat   time.Duration
	Log    *slog.Logger

	set        config.Set
	named      config.Set      // with the devices' own names, as at the last survey
	fresh      bool            // the files were read since the last survey
	surveyAt   time.Time       // when to look next at what there is
	surveyTook time.Duration   // the last time
	sweeps     bool            // devices went, or were divided, since the last sweep
	strange    []int           // devices from which traffic control was removed, and that no survey has seen
	left       []string        // those that went
	devices    map[int]*memory // by index
	twice      string          // devices that are named twice, as it was told last
	there      []Device        // as at the last survey
	told       told            // what was told last
	anew       bool            // it is to be told again, the same or not
	asks       ask.Loop        // what programs of this host want
	passed     map[uint32][]passed
}

// Kernel is what there is.
type Kernel interface {
	// Devices are those of the network namespace.
	Devices() ([]Device, error)
	// Cgroup is the id of a cgroup, false if there is none.
	Cgroup(path string) (id uint64, ok bool)
	// Watch asks for events when one of these cgroups, and no others, is made or
	// removed.
	Watch(cgroups []string) error
	// Events tell that it is time to look.
	Events() <-chan Event
}

// Event tells where to look.
type Event struct {
	// Removed is the index of a device from which traffic control was removed; 0
	// is anything else: devices or cgroups came, went or changed.
	Removed int
	// Hooks tells that chains or flowtables of nftables came or went, on whatever device.
	Hooks bool
	// Lost tells that events may have been lost.
	Lost bool
	// Broken tells that no more will come.
	Broken error
}

// Run reads the files and keeps them in force until ctx ends, which leaves in
// force what is. It returns an error only if the files cannot be read to begin
// with, or if the kernel does not permit what must be done. It must stay on its
// thread if that is in another network namespace than the process.
func (a *Agent) Run(ctx context.Context) error {
	set, err := a.Load()
	if err != nil {
		return err
	}
	a.set, a.fresh, a.devices = set, true, map[int]*memory{}
	if err := a.steps(ctx); err != nil {
		return err
	}
	a.ready()
	meter := time.NewTimer(untilWhole(time.Now(), a.MeterEvery))
	defer meter.Stop()
	if a.MeterEvery == 0 {
		meter.Stop()
	}
	timer, beat := time.NewTimer(0), time.NewTicker(max(a.Beat, time.Millisecond))
	defer beat.Stop()
	if a.Beat == 0 {
		beat.Stop()
	}
	for {
		timer.Reset(time.Until(a.next()))
		select {
		case <-ctx.Done():
			a.Notify("STOPPING=1")
			a.Log.Info("the agent stops; what is in force stays in force")
			return nil
		case <-a.Reload:
			if err := a.reload(ctx); err != nil {
				return err
			}
		case <-a.Refresh:
			a.set, a.surveyAt, a.anew = a.Latest(), time.Time{}, true // what did not change is not looked at
		case e := <-a.Kernel.Events():
			if e.Broken != nil {
				return fmt.Errorf("the kernel's notifications cannot be read any more: %w", e.Broken)
			}
			a.note(e)
		case do := <-a.asks:
			do()
			continue
		case <-meter.C:
			a.read()
			meter.Reset(untilWhole(time.Now(), a.MeterEvery))
			continue
		case a.MeterEvery = <-a.Meter:
			meter.Reset(untilWhole(time.Now(), a.MeterEvery))
			continue
		case <-beat.C:
			a.Notify("WATCHDOG=1")
			continue
		case <-timer.C:
		}
		if err := a.step(ctx); err != nil {
			return err
		}
	}
}

// next is when there is something to do if nothing happens until then.
func (a *Agent) next() time.Time {
	at := a.surveyAt
	for _, m := range a.devices {
		if m.timing.due.Before(at) {
			at = m.timing.due
		}
	}
	return at
}

// note takes an event in. What it is about is looked at a little later.
func (a *Agent) note(e Event) {
	now := time.Now()
	if at := now.Add(a.settle()); (e.Removed == 0 && !e.Hooks || e.Lost) && at.Before(a.surveyAt) {
		a.surveyAt = at
	}
	switch {
	case e.Lost:
		a.suspectAll(now)
	case e.Hooks:
		for _, m := range a.devices {
			m.timing.hooks(now)
		}
	case e.Removed != 0 && !a.suspect(e.Removed, now):
		// The IFB of one of them, perhaps, that is newer than the last survey; the next one, which
		// its coming or going brings about, knows more.
		a.strange = append(a.strange, e.Removed)
	}
}

// suspect: traffic control was removed from a device, or from the IFB of one. It is false if it is
// not known which.
func (a *Agent) suspect(index int, now time.Time) bool {
	if m, known := a.devices[index]; known {
		m.timing.suspect(now)
		return true
	}
	i := slices.IndexFunc(a.there, func(d Device) bool { return d.Index == index })
	if i < 0 {
		return false
	}
	if of, err := strconv.Atoi(strings.TrimPrefix(a.there[i].Name, group.IFBPrefix)); err == nil {
		if m, known := a.devices[of]; known {
			m.timing.suspect(now)
		}
	}
	return true // another's, which is no business of ours
}

func (a *Agent) suspectAll(now time.Time) {
	for _, m := range a.devices {
		m.timing.suspect(now)
	}
}

// reload reads the files again; bad ones change nothing.
func (a *Agent) reload(ctx context.Context) error {
	a.Notify(reloading())
	set, err := a.Load()
	if err != nil {
		a.Log.Error("the files have mistakes: what they said before holds", "mistakes", err.Error())
	} else {
		a.Log.Info("the files were read again")
		a.set, a.fresh, a.surveyAt, a.anew = set, true, time.Time{}, true
		for _, m := range a.devices {
			m.force = true
			m.timing.changed(time.Now())
		}
		if err := a.steps(ctx); err != nil {
			return err
		}
	}
	a.ready()
	return nil
}

func (a *Agent) ready() {
	shaped := 0
	for _, m := range a.devices {
		if m.mine != "" {
			shaped++
		}
	}
	a.Notify(fmt.Sprintf("READY=1\nSTATUS=groups in force on %d of %d devices", shaped, len(a.devices)))
}

// step does what is due, or a part of it: there may be more then, and what has come meanwhile is
// taken in before.
func (a *Agent) step(ctx context.Context) error {
	if !time.Now().Before(a.surveyAt) {
		a.surveyAt = time.Now().Add(lookEvery)
		began := time.Now()
		if err := a.survey(); err != nil {
			a.Log.Error("what there is on this machine cannot be read", "error", err)
			a.surveyAt = time.Now().Add(firstPause)
		}
		a.surveyTook = time.Since(began)
		a.Log.Debug("devices were listed", "took", a.surveyTook)
	}
	if due := a.due(time.Now()); len(due) > 0 && ctx.Err() == nil {
		a.Log.Debug("devices are looked at", "due", len(due), "of", len(a.devices))
		if err := a.look(due[:min(len(due), atOnce)]); err != nil {
			return err
		}
		a.Notify("WATCHDOG=1\nEXTEND_TIMEOUT_USEC=30000000") // a thousand devices take half a minute
	}
	if len(a.due(time.Now())) == 0 {
		a.sweep()
	}
	a.tell()
	return nil
}

// steps does all that is due.
func (a *Agent) steps(ctx context.Context) error {
	for {
		if err := a.step(ctx); err != nil || ctx.Err() != nil || len(a.due(time.Now())) == 0 {
			return err
		}
	}
}

// due are the devices that are to be looked at: those that have nothing yet, the newest first, and
// then the others. A container that has just begun does not wait for the many that have what they
// need.
func (a *Agent) due(now time.Time) []*memory {
	var without, others []*memory
	for _, index := range slices.Backward(slices.Sorted(maps.Keys(a.devices))) {
		switch m := a.devices[index]; {
		case now.Before(m.timing.due):
		case m.done == "":
			without = append(without, m)
		default:
			others = append(others, m)
		}
	}
	return append(without, others...)
}

// sweep removes what devices left that went, also those whose names others have now.
func (a *Agent) sweep() {
	if !a.sweeps {
		return
	}
	a.sweeps = false
	for _, name := range slices.Sorted(maps.Keys(a.Engines)) {
		if err := shaper.Sweep(a.Engines[name], a.left...); err != nil {
			a.Log.Warn("what was made for devices that are gone cannot be removed", "devices", a.left, "error", err)
		}
	}
	a.left = nil
}

// read reads what is in force, and what it has carried.
func (a *Agent) read() {
	var states []shaper.State
	var divided []*memory
	for _, index := range slices.Sorted(maps.Keys(a.devices)) {
		if m := a.devices[index]; m.mine != "" {
			divided = append(divided, m)
		}
	}
	found, errs := ObserveAll(a.Engines, names(divided))
	for i, m := range divided {
		switch state, err := found[i], errs[i]; {
		case err == nil && state != nil:
			states = append(states, *state)
		case err != nil && !errors.Is(err, shaper.ErrNoDevice) && !errors.Is(err, unix.ENODEV):
			a.say(m, slog.LevelWarn, "what its groups have had cannot be read, and is read again", "error", err)
		}
	}
	a.Metered(time.Now(), states)
}

// told is what is told, and that because of which it is.
type told struct {
	troubles map[string]string
	byHand   []string
	there    []Device
}

// tell says what is not as it is wanted.
func (a *Agent) tell() {
	if a.Told == nil {
		return
	}
	troubles, byHand := map[string]string{}, []string{}
	for _, m := range a.devices {
		if m.trouble != "" {
			troubles[m.name] = m.trouble
		}
		if m.byHand {
			byHand = append(byHand, m.name)
		}
	}
	slices.Sort(byHand)
	now := told{troubles, byHand, a.there}
	if !a.anew && reflect.DeepEqual(now, a.told) {
		return
	}
	a.told, a.anew = now, false
	a.Told(maps.Clone(troubles), byHand)
}

// say logs, but not the same twice in a row about one device.
func (a *Agent) say(m *memory, level slog.Level, message string, attrs ...any) {
	attrs = append([]any{"dev", m.name}, attrs...)
	if said := message + fmt.Sprint(attrs...); said != m.said {
		m.said = said
		a.Log.Log(context.Background(), level, message, attrs...)
	}
}
