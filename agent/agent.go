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

	"headgate.dev/headgate/agent/reserved"
	"headgate.dev/headgate/config"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/ask"
	"headgate.dev/headgate/internal/sdnotify"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// Agent is the control loop and its dependencies.
type Agent struct {
	// Load reads and parses the configuration files.
	Load    func() (config.Set, error)
	Engines map[group.Engine]shaper.Shaper
	Kernel  Kernel
	// Reload requests that the files are loaded again.
	Reload <-chan struct{}
	// Refresh requests that the agent fetches the merged configuration with Latest: the files as
	// last loaded, and the controllers' current documents. Plans applied by hand stay.
	Refresh <-chan struct{}
	Latest  func() config.Set
	// Connections returns the connections that are assigned to groups of a device or pattern, as
	// the document names it. Nil means none, ever.
	Connections func(dev string) []shaper.Assignment
	// Unknown returns the devices and patterns, as documents name them, whose documents the agent
	// cannot parse. What an agent of another version applied there stays. Nil means none, ever.
	Unknown func() []string
	// Reservations returns the reservations of this host; Refresh signals changes. Adjusted signals that
	// limits alone have changed, and Limits returns all of them by key. ReportReservations is called after each round that changed which
	// reservations are not in force, with the reasons by key, and with each call of Report. Nil means that
	// there are no reservations, ever.
	Reservations       func() reserved.Desired
	Adjusted           <-chan struct{}
	Limits             func() map[string]unit.Rate
	ReportReservations func(errs map[string]string)
	// OnSample is called every SampleInterval with the state of each device that has groups, unless
	// SampleInterval is 0. The calls are aligned to whole multiples of SampleInterval on the clock, so that
	// the samples of all hosts are of the same time.
	OnSample       func(at time.Time, states []shaper.State)
	SampleInterval time.Duration
	// SampleIntervals delivers new values of SampleInterval, which must not be 0.
	SampleIntervals <-chan time.Duration
	// Report reports the devices whose desired state is not in force, with the reason, and the
	// devices of which the reason is a plan or change applied by hand. Report is called after a round
	// that changed either of these or the list of devices, and after each round that loaded a
	// configuration. Report may be nil.
	Report func(errs map[string]string, byHand []string)
	// Lock prevents other processes from changing traffic control until unlock. Pending returns the
	// devices whose last change awaits confirmation.
	Lock    func() (unlock func(), err error)
	Pending func() []string
	// StateFile publishes which devices the agent owns.
	StateFile *StateFile
	// Notify sends a message to the service manager. The service manager expects a watchdog message
	// every WatchdogInterval, unless WatchdogInterval is 0.
	Notify           func(state string)
	WatchdogInterval time.Duration
	Log              *slog.Logger

	set             config.Set
	named           config.Set           // set with alternative names replaced by kernel names, as of the last device listing
	reloaded        bool                 // the files were loaded after the last device listing
	nextList        time.Time            // when the devices are listed next
	listDuration    time.Duration        // duration of the last device listing
	sweepDue        bool                 // a device was removed or shaped after the last sweep
	unknownIndexes  []int                // indexes in removal events that no device listing has seen yet
	removedNames    []string             // names of devices that were removed
	devices         map[int]*deviceState // by index
	lastAliasError  string               // the last logged error about devices that are configured twice
	devicesSeen     []Device             // the devices as of the last device listing
	lastReport      lastReport           // the last report
	reportDue       bool                 // the next report is sent even if it equals the last one
	requests        ask.Loop             // requests from programs of this host
	userAssignments map[uint32][]userAssignment
	reserved        reserved.Desired  // the reservations as of the last device listing, with the limits as last read
	refused         map[string]string // why reservations have no group, by key
	publishAt       time.Time         // when changed limits are written to the state file; zero if none have changed
}

// Kernel is the agent's view of the operating system.
type Kernel interface {
	// Devices lists the devices of the network namespace.
	Devices() ([]Device, error)
	// Cgroup returns the id of a cgroup, or false if the cgroup does not exist.
	Cgroup(path string) (id uint64, ok bool)
	// Watch replaces the set of watched cgroups. An event follows when one of them is created or
	// removed.
	Watch(cgroups []string) error
	// Events delivers events that start a check.
	Events() <-chan Event
}

// Event describes what to check.
type Event struct {
	// Removed is the index of a device from which traffic control was removed. 0 means any other
	// event: devices or cgroups were created, removed or changed.
	Removed int
	// Hooks means that nftables chains or flowtables were created or removed, on any device.
	Hooks bool
	// Lost means that events may have been lost.
	Lost bool
	// Broken means that no more events will be delivered.
	Broken error
}

// Run loads the files and keeps the configuration in force until ctx ends; the applied plans stay
// after that. Run returns an error only if the files cannot be loaded at the start, or if the
// kernel denies permission. Run must stay on its thread if the thread's network namespace is not
// that of the process.
func (a *Agent) Run(ctx context.Context) error {
	set, err := a.Load()
	if err != nil {
		return err
	}
	a.set, a.reloaded, a.devices = set, true, map[int]*deviceState{}
	if err := a.steps(ctx); err != nil {
		return err
	}
	a.ready()
	meter := time.NewTimer(untilNextMultiple(time.Now(), a.SampleInterval))
	defer meter.Stop()
	if a.SampleInterval == 0 {
		meter.Stop()
	}
	timer, beat := time.NewTimer(0), time.NewTicker(max(a.WatchdogInterval, time.Millisecond))
	defer beat.Stop()
	if a.WatchdogInterval == 0 {
		beat.Stop()
	}
	for {
		timer.Reset(time.Until(a.next()))
		select {
		case <-ctx.Done():
			a.Notify("STOPPING=1")
			a.Log.Info("stopping; applied shaping stays in force")
			return nil
		case <-a.Reload:
			if err := a.reload(ctx); err != nil {
				return err
			}
		case <-a.Refresh:
			a.set, a.nextList, a.reportDue = a.Latest(), time.Time{}, true // unchanged devices are not checked
		case e := <-a.Kernel.Events():
			if e.Broken != nil {
				return fmt.Errorf("cannot read kernel notifications: %w", e.Broken)
			}
			a.note(e)
		case <-a.Adjusted:
			a.adjust()
			continue
		case do := <-a.requests:
			do()
			continue
		case <-meter.C:
			a.read()
			meter.Reset(untilNextMultiple(time.Now(), a.SampleInterval))
			continue
		case a.SampleInterval = <-a.SampleIntervals:
			meter.Reset(untilNextMultiple(time.Now(), a.SampleInterval))
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

// next returns the time of the next scheduled work.
func (a *Agent) next() time.Time {
	at := a.nextList
	if !a.publishAt.IsZero() && a.publishAt.Before(at) {
		at = a.publishAt
	}
	for _, m := range a.devices {
		if m.schedule.due.Before(at) {
			at = m.schedule.due
		}
	}
	return at
}

// note records an event and schedules the check that it requires after the settle time.
func (a *Agent) note(e Event) {
	now := time.Now()
	if at := now.Add(a.settle()); (e.Removed == 0 && !e.Hooks || e.Lost) && at.Before(a.nextList) {
		a.nextList = at
	}
	switch {
	case e.Lost:
		a.suspectAll(now)
	case e.Hooks:
		for _, m := range a.devices {
			m.schedule.hooks(now)
		}
	case e.Removed != 0 && !a.suspect(e.Removed, now):
		// The index may be that of an IFB that is newer than the last device listing. The
		// event of its creation or removal causes another listing, which resolves the index.
		a.unknownIndexes = append(a.unknownIndexes, e.Removed)
	}
}

// suspect schedules a check of the device from which traffic control was removed, or of the device
// to which the IFB with this index belongs. It returns false if the index is unknown.
func (a *Agent) suspect(index int, now time.Time) bool {
	if m, known := a.devices[index]; known {
		m.schedule.suspect(now)
		return true
	}
	i := slices.IndexFunc(a.devicesSeen, func(d Device) bool { return d.Index == index })
	if i < 0 {
		return false
	}
	if of, err := strconv.Atoi(strings.TrimPrefix(a.devicesSeen[i].Name, group.IFBPrefix)); err == nil {
		if m, known := a.devices[of]; known {
			m.schedule.suspect(now)
		}
	}
	return true // a device that the agent does not own
}

func (a *Agent) suspectAll(now time.Time) {
	for _, m := range a.devices {
		m.schedule.suspect(now)
	}
}

// reload loads the files again. If they have errors, the previous configuration stays.
func (a *Agent) reload(ctx context.Context) error {
	a.Notify(sdnotify.Reloading())
	set, err := a.Load()
	if err != nil {
		a.Log.Error("cannot load configuration files, keeping the previous configuration", "error", err.Error())
	} else {
		a.Log.Info("reloaded configuration files")
		a.set, a.reloaded, a.nextList, a.reportDue = set, true, time.Time{}, true
		for _, m := range a.devices {
			m.force = true
			m.schedule.changed(time.Now())
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
		if m.appliedHash != "" {
			shaped++
		}
	}
	a.Notify(fmt.Sprintf("READY=1\nSTATUS=shaping %d of %d devices", shaped, len(a.devices)))
}

// step runs the work that is due, or a part of it. Between two steps the loop receives new events.
func (a *Agent) step(ctx context.Context) error {
	if !time.Now().Before(a.nextList) {
		a.nextList = time.Now().Add(resyncInterval)
		began := time.Now()
		if err := a.listDevices(); err != nil {
			a.Log.Error("cannot list network devices, retrying", "error", err)
			a.nextList = time.Now().Add(minBackoff)
		}
		a.listDuration = time.Since(began)
		a.Log.Debug("listed devices", "duration", a.listDuration)
	}
	if due := a.due(time.Now()); len(due) > 0 && ctx.Err() == nil {
		a.Log.Debug("checking devices", "due", len(due), "total", len(a.devices))
		if err := a.reconcile(due[:min(len(due), checkBatchSize)]); err != nil {
			return err
		}
		a.Notify("WATCHDOG=1\nEXTEND_TIMEOUT_USEC=30000000") // 1,000 devices take 30 s
	}
	if len(a.due(time.Now())) == 0 {
		a.sweep()
	}
	if !a.publishAt.IsZero() && !time.Now().Before(a.publishAt) {
		a.publishState()
	}
	a.report()
	return nil
}

// steps runs all the work that is due.
func (a *Agent) steps(ctx context.Context) error {
	for {
		if err := a.step(ctx); err != nil || ctx.Err() != nil || len(a.due(time.Now())) == 0 {
			return err
		}
	}
}

// due returns the devices whose check is due: first the devices without a plan, the newest first,
// then the others. So a new container's device does not wait for the checks of many devices that
// are already shaped.
func (a *Agent) due(now time.Time) []*deviceState {
	var without, others []*deviceState
	for _, index := range slices.Backward(slices.Sorted(maps.Keys(a.devices))) {
		switch m := a.devices[index]; {
		case now.Before(m.schedule.due):
		case m.appliedCause == "":
			without = append(without, m)
		default:
			others = append(others, m)
		}
	}
	return append(without, others...)
}

// sweep removes what removed devices left behind, also those whose names new devices have now.
func (a *Agent) sweep() {
	if !a.sweepDue {
		return
	}
	a.sweepDue = false
	for _, name := range slices.Sorted(maps.Keys(a.Engines)) {
		if err := shaper.Sweep(a.Engines[name], a.removedNames...); err != nil {
			a.Log.Warn("cannot remove the objects of removed devices", "devices", a.removedNames, "error", err)
		}
	}
	a.removedNames = nil
}

// read reads the state and counters of the shaped devices and passes them to OnSample.
func (a *Agent) read() {
	var states []shaper.State
	var divided []*deviceState
	for _, index := range slices.Sorted(maps.Keys(a.devices)) {
		if m := a.devices[index]; m.appliedHash != "" {
			divided = append(divided, m)
		}
	}
	found, errs := ObserveAll(a.Engines, names(divided))
	for i, m := range divided {
		switch state, err := found[i], errs[i]; {
		case err == nil && state != nil:
			states = append(states, *state)
		case err != nil && !errors.Is(err, shaper.ErrNoDevice) && !errors.Is(err, unix.ENODEV):
			a.logOnce(m, slog.LevelWarn, "cannot read group counters, retrying", "error", err)
		}
	}
	a.OnSample(time.Now(), states)
}

// lastReport is the content of a report, and the list of devices; a change of either causes a new report.
type lastReport struct {
	failures    map[string]string
	byHand      []string
	reserved    map[string]string // reservations that are not in force
	devicesSeen []Device
}

// report calls Report if the report has changed.
func (a *Agent) report() {
	if a.Report == nil {
		return
	}
	errs, byHand := map[string]string{}, []string{}
	for _, m := range a.devices {
		if m.problem != "" {
			errs[m.name] = m.problem
		}
		if m.byHand {
			byHand = append(byHand, m.name)
		}
	}
	slices.Sort(byHand)
	now := lastReport{errs, byHand, a.reservationProblems(), a.devicesSeen}
	if !a.reportDue && reflect.DeepEqual(now, a.lastReport) {
		return
	}
	a.lastReport, a.reportDue = now, false
	a.Report(maps.Clone(errs), byHand)
	if a.ReportReservations != nil {
		a.ReportReservations(maps.Clone(now.reserved))
	}
}

// logOnce logs a message about a device, unless the previous message about this device was the same.
func (a *Agent) logOnce(m *deviceState, level slog.Level, message string, attrs ...any) {
	attrs = append([]any{"dev", m.name}, attrs...)
	if said := message + fmt.Sprint(attrs...); said != m.lastLog {
		m.lastLog = said
		a.Log.Log(context.Background(), level, message, attrs...)
	}
}
