package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
)

// listDevices lists the devices and updates the agent's records of them.
func (a *Agent) listDevices() error {
	if err := a.Kernel.Watch(a.cgroups()); err != nil {
		a.Log.Warn("cannot watch cgroups: a new cgroup is detected within a minute", "error", err)
	}
	devices, err := a.Kernel.Devices()
	if err != nil {
		return err
	}
	a.devicesSeen = devices
	now := time.Now()
	if slices.ContainsFunc(a.unknownIndexes, func(index int) bool { return !a.suspect(index, now) }) {
		a.suspectAll(now) // the device is already removed
	}
	a.unknownIndexes = nil
	there := map[int]string{}
	for _, d := range devices {
		there[d.Index] = d.Name
	}
	if err := a.resolveAltNames(devices); err != nil {
		a.Log.Error("device is configured twice: the configuration for its kernel name applies", "error", err.Error())
	}
	if a.reloaded {
		a.reloaded = false
		a.logMissingDevices(devices)
	}
	wanted := desiredStates(a.named, devices, a.Kernel.Cgroup, a.Connections)
	a.reserve(wanted, devices)
	for index, w := range wanted {
		m := a.devices[index]
		if m == nil {
			m = &deviceState{force: true, assigned: a.StateFile.takeAssigned(w.plan.Dev)}
			a.devices[index] = m
		}
		if m.desired == nil || m.desired.cause != w.cause {
			m.schedule.changed(now)
			if len(w.absent) > 0 {
				a.Log.Info("rules are inactive until their cgroups exist", "dev", w.plan.Dev, "cgroups", w.absent)
			}
		}
		m.name, m.desired = w.plan.Dev, &w
	}
	// Devices that a previous agent shaped and that the configuration no longer names.
	for _, d := range devices {
		if mine := a.StateFile.takeAppliedHash(d.Name); mine != "" && a.devices[d.Index] == nil {
			a.devices[d.Index] = &deviceState{name: d.Name, appliedHash: mine}
		}
	}
	for index, m := range a.devices {
		_, stays := wanted[index]
		name, exists := there[index]
		switch {
		case stays:
		case exists:
			if m.desired != nil {
				m.schedule.changed(now)
			}
			m.name, m.desired = name, nil
		default:
			a.deviceRemoved(m, slices.Collect(maps.Values(there)))
			delete(a.devices, index)
		}
	}
	a.publishState()
	return nil
}

// resolveAltNames replaces alternative names in the configuration by kernel names. It returns an
// error once, until the text of the error changes.
func (a *Agent) resolveAltNames(devices []Device) (err error) {
	a.named, err = a.set.WithAltNames(Names(devices))
	text := fmt.Sprint(err)
	if a.lastAliasError == text {
		return nil
	}
	if a.lastAliasError = text; err != nil {
		return err
	}
	return nil
}

// cgroups returns all cgroups that the configuration names.
func (a *Agent) cgroups() (paths []string) {
	for _, i := range a.set.Interfaces {
		paths = append(paths, cgroupsOf(i)...)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// deviceRemoved handles the removal of a device. The kernel removes the device's queues, but not the IFB
// that was created for it.
func (a *Agent) deviceRemoved(m *deviceState, names []string) {
	a.Log.Info("device removed", "dev", m.name)
	a.sweepDue = true
	if !slices.Contains(names, m.name) { // shaping a device of the same name removes the leftovers of this one
		a.removedNames = append(a.removedNames, m.name)
	}
}

// reconcile reconciles devices with their desired state. Changes of several devices by the same engine
// run concurrently. It returns an error only if no device can be changed.
func (a *Agent) reconcile(all []*deviceState) error {
	for _, m := range all {
		m.problem, m.byHand = "", false
	}
	errs := a.reconcileLocked(all)
	var fatal error
	for i, m := range all {
		switch err := errs[i]; {
		case errors.Is(err, shaper.ErrPermission):
			fatal = err
		case errors.Is(err, shaper.ErrNoDevice) || errors.Is(err, unix.ENODEV):
			// The device was removed during the check; the notification follows.
			m.schedule.failed(time.Now())
		case err != nil:
			m.schedule.failed(time.Now())
			m.problem = err.Error()
			a.logOnce(m, slog.LevelError, "cannot apply configuration, retrying", "error", err)
		}
	}
	maps.DeleteFunc(a.devices, func(_ int, m *deviceState) bool {
		return m.desired == nil && m.appliedHash == "" && slices.Contains(all, m)
	})
	a.publishState()
	return fatal
}

// reconcileLocked does the work of reconcile and returns the error of each device.
func (a *Agent) reconcileLocked(all []*deviceState) []error {
	errs := make([]error, len(all))
	unlock, err := a.Lock()
	if err != nil {
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	defer unlock()
	pending := a.Pending()
	var asked []int // indexes into all
	for i, m := range all {
		switch {
		case slices.Contains(pending, m.name):
			m.schedule.postpone(time.Now())
			m.setManualChange("a change that was applied by hand on the host awaits confirmation, and the agent does not change the device until then: run \"headgate confirm\" there to keep it, or \"headgate confirm --roll-back\" to undo it")
			a.logOnce(m, slog.LevelInfo, "a change awaits confirmation, leaving the device unchanged until then")
		case m.desired == nil && a.Unknown != nil && Names(a.devicesSeen).Of(m.name, a.Unknown()) >= 0:
			m.schedule.fine(time.Now())
		default:
			asked = append(asked, i)
		}
	}
	states, failed := ObserveAll(a.Engines, names(pick(all, asked)))
	batches := map[group.Engine]*planBatch{}
	for n, i := range asked {
		if errs[i] = failed[n]; errs[i] == nil {
			errs[i] = a.compare(all[i], states[n], batches)
		}
	}
	for _, engine := range slices.Sorted(maps.Keys(batches)) {
		for m, err := range a.apply(engine, batches[engine]) {
			errs[slices.Index(all, m)] = err
		}
	}
	return errs
}

func pick(all []*deviceState, which []int) (out []*deviceState) {
	for _, i := range which {
		out = append(out, all[i])
	}
	return out
}

func names(all []*deviceState) (out []string) {
	for _, m := range all {
		out = append(out, m.name)
	}
	return out
}

// planBatch are plans for devices that one engine shapes.
type planBatch struct {
	devices []*deviceState
	plans   []shaper.Plan
}

// compare decides what to do about a device with the actual state, and does it, except that plans
// are added to the planBatch of their engine.
func (a *Agent) compare(m *deviceState, state *shaper.State, to map[group.Engine]*planBatch) error {
	add := func(engine group.Engine, p shaper.Plan) {
		if to[engine] == nil {
			to[engine] = &planBatch{}
		}
		to[engine].devices, to[engine].plans = append(to[engine].devices, m), append(to[engine].plans, p)
	}
	switch decide(m, state) {
	case apply:
		if state != nil && state.Engine != m.desired.engine {
			if err := a.Engines[state.Engine].Clear(m.name); err != nil {
				return err
			}
		}
		add(m.desired.engine, m.desired.plan)
	case repair:
		m.setManualChange(appliedByHand(m.name))
		add(state.Engine, state.Plan)
	case takeAway:
		if err := a.Engines[state.Engine].Clear(m.name); err != nil {
			return err
		}
		a.Log.Info("cleared a device that is no longer configured", "dev", m.name)
		m.appliedHash = ""
	default:
		if m.desired == nil {
			m.appliedHash = ""
			return nil
		}
		m.setManualChange(appliedByHand(m.name))
		a.logOnce(m, slog.LevelInfo, "keeping the plan that was applied by hand until the files are reloaded")
		m.schedule.fine(time.Now())
	}
	return nil
}

// setManualChange records why a device's desired state is not in force, when the reason is a manual change.
func (m *deviceState) setManualChange(why string) { m.problem, m.byHand = why, true }

func appliedByHand(dev string) string {
	return fmt.Sprintf("the active plan was applied by hand on the host and overrides the configuration: remove it there (\"headgate clear --dev %s\") or reload the agent's files (\"systemctl reload headgate\")", dev)
}

// apply applies plans and returns the errors by device.
func (a *Agent) apply(engine group.Engine, g *planBatch) map[*deviceState]error {
	failed := map[*deviceState]error{}
	e, ok := a.Engines[engine]
	if !ok {
		for _, m := range g.devices {
			failed[m] = fmt.Errorf("engine %s is not built into this program: choose another with engine: in %s", engine, m.desired.source)
		}
		return failed
	}
	for i, done := range shaper.ApplyAll(e, g.plans) {
		m, err := g.devices[i], done.Err
		if err == nil {
			err = a.applied(m, e, g.plans[i], done.Changes)
		}
		if err != nil {
			failed[m] = err
		}
	}
	return failed
}

// applied records a plan that was applied.
func (a *Agent) applied(m *deviceState, e shaper.Shaper, p shaper.Plan, changes []shaper.Change) error {
	if len(changes) > 0 {
		a.sweepDue = true // a previous device of this name may have left objects
	}
	if planHash(p) == planHash(m.desired.plan) { // a plan applied by hand may have other groups
		if err := a.reconcileConnections(m, e); err != nil {
			return err
		}
		m.limits = nil // another program may have changed them
		if err := a.setLimits(m); err != nil {
			return err
		}
	}
	now := time.Now()
	m.schedule.fine(now)
	switch {
	case len(changes) == 0:
	case m.appliedCause == m.desired.cause && !m.force:
		m.schedule.repaired(now)
		a.Log.Warn("repaired drift: another program changed the device's traffic control", "dev", m.name, "changes", changeSummary(changes))
	default:
		a.Log.Info("applied configuration", "dev", m.name, "file", m.desired.source, "changes", len(changes))
	}
	m.lastLog, m.appliedCause, m.force = "", m.desired.cause, false
	if planHash(p) == planHash(m.desired.plan) {
		m.appliedHash = planHash(p)
	}
	return nil
}

// changeSummary lists the first few changes.
func changeSummary(changes []shaper.Change) string {
	const few = 3
	text := ""
	for i, c := range changes {
		if i == few {
			return fmt.Sprintf("%s, and %d more", text, len(changes)-few)
		}
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%s %s", c.Verb, c.Object)
	}
	return text
}

// Observe reads the state of a device, whichever engine shapes it. The state is nil if no engine
// does.
func Observe(engines map[group.Engine]shaper.Shaper, dev string) (*shaper.State, error) {
	states, errs := ObserveAll(engines, []string{dev})
	return states[0], errs[0]
}

// ObserveAll reads the state of several devices; see Observe.
func ObserveAll(engines map[group.Engine]shaper.Shaper, devs []string) (states []*shaper.State, errs []error) {
	states, errs = make([]*shaper.State, len(devs)), make([]error, len(devs))
	open := make([]int, len(devs)) // indexes of devices for which no engine has returned a state yet
	for i := range open {
		open[i] = i
	}
	for _, name := range slices.Sorted(maps.Keys(engines)) {
		asked := make([]string, len(open))
		for n, i := range open {
			asked[n] = devs[i]
		}
		var next []int
		for n, o := range shaper.ObserveAll(engines[name], asked) {
			switch i := open[n]; {
			case errors.Is(o.Err, shaper.ErrNotShaped):
				next = append(next, i)
			case o.Err != nil:
				errs[i] = o.Err
			default:
				o.State.Engine = name
				states[i] = &o.State
			}
		}
		open = next
	}
	return states, errs
}

// logMissingDevices logs the configured devices that do not exist yet.
func (a *Agent) logMissingDevices(devices []Device) {
	for _, i := range a.named.Interfaces {
		if !slices.ContainsFunc(devices, func(d Device) bool { owner, ok := a.named.For(d.Name); return ok && owner.Dev == i.Dev }) {
			a.Log.Info("waiting for device", "dev", i.WrittenDev(), "file", i.Name())
		}
	}
}

// publishState writes to the state file which devices and connections the agent owns. Without the
// file the agent works, but its plans stay on devices that are removed from the configuration while
// it is stopped.
func (a *Agent) publishState() {
	now := stateFileContent{AppliedHashes: map[string]string{}, Assigned: map[string][]shaper.Assignment{}, Origins: map[string]map[string]group.Origin{}}
	for _, m := range a.devices {
		if len(m.assigned) > 0 {
			now.Assigned[m.name] = m.assigned
		}
		if m.appliedHash != "" {
			now.AppliedHashes[m.name] = m.appliedHash
		}
	}
	for _, i := range a.named.Interfaces {
		now.Devs, now.Sources = append(now.Devs, i.Dev), append(now.Sources, i.File)
		if origins := i.Origins(); len(origins) > 0 {
			now.Origins[i.Dev] = origins
		}
	}
	a.publishReservations(&now)
	if err := a.StateFile.write(now); err != nil {
		a.Log.Warn("cannot write the agent's state file", "error", err)
	}
}
