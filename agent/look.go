package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"headgate/group"
	"headgate/shaper"
)

// survey brings what is known of the devices up to date.
func (a *Agent) survey() error {
	if err := a.Kernel.Watch(a.cgroups()); err != nil {
		a.Log.Warn("cgroups cannot be watched: one that is made again is noticed within a minute", "error", err)
	}
	devices, err := a.Kernel.Devices()
	if err != nil {
		return err
	}
	a.there = devices
	now := time.Now()
	there := map[int]string{}
	for _, d := range devices {
		there[d.Index] = d.Name
	}
	if a.fresh {
		a.fresh = false
		a.tellAbsent(devices)
	}
	wanted := wants(a.set, devices, a.Kernel.Cgroup, a.Connections)
	for index, w := range wanted {
		m := a.devices[index]
		if m == nil {
			m = &memory{force: true, assigned: a.Claim.takeAssigned(w.plan.Dev)}
			a.devices[index] = m
		}
		if m.want == nil || m.want.cause != w.cause {
			m.timing.changed(now)
			if len(w.absent) > 0 {
				a.Log.Info("rules wait for cgroups that do not exist", "dev", w.plan.Dev, "cgroups", w.absent)
			}
		}
		m.name, m.want = w.plan.Dev, &w
	}
	// What an earlier agent put in force on devices that the files name no more.
	for _, d := range devices {
		if mine := a.Claim.takeMade(d.Name); mine != "" && a.devices[d.Index] == nil {
			a.devices[d.Index] = &memory{name: d.Name, mine: mine}
		}
	}
	for index, m := range a.devices {
		_, stays := wanted[index]
		name, exists := there[index]
		switch {
		case stays:
		case exists:
			if m.want != nil {
				m.timing.changed(now)
			}
			m.name, m.want = name, nil
		default:
			a.gone(m, slices.Collect(maps.Values(there)))
			delete(a.devices, index)
		}
	}
	a.claim()
	return nil
}

// cgroups are all that the files name.
func (a *Agent) cgroups() (paths []string) {
	for _, i := range a.set.Interfaces {
		paths = append(paths, cgroupsOf(i)...)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// gone: a device took its shaping along, but not the IFB that was made for it.
func (a *Agent) gone(m *memory, names []string) {
	a.Log.Info("the device is gone", "dev", m.name)
	if slices.Contains(names, m.name) {
		return // who shapes its successor sweeps up
	}
	for _, name := range slices.Sorted(maps.Keys(a.Engines)) {
		if err := a.Engines[name].Clear(m.name); err != nil {
			a.Log.Warn("what was made for a device that is gone cannot be removed", "dev", m.name, "error", err)
		}
	}
}

// look compares a device with what it should have, and does what is to be done.
func (a *Agent) look(m *memory) error {
	unlock, err := a.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	if slices.Contains(a.Pending(), m.name) {
		m.timing.waits(time.Now())
		m.left("a change that was applied by hand on the host waits for its confirmation, and is left alone until then: run \"headgate confirm\" there to keep it, or \"headgate confirm --roll-back\" to undo it")
		a.say(m, slog.LevelInfo, "a change waits for its confirmation, and is left alone until then")
		return nil
	}
	if m.want == nil && a.Unknown != nil && a.Unknown(m.name) {
		m.timing.fine(time.Now())
		return nil
	}
	state, err := Observe(a.Engines, m.name)
	if err != nil {
		return err
	}
	switch decide(m, state) {
	case give:
		if state != nil && state.Engine != m.want.engine {
			if err := a.Engines[state.Engine].Clear(m.name); err != nil {
				return err
			}
		}
		return a.give(m, m.want.engine, m.want.plan)
	case mend:
		m.left(appliedByHand(m.name))
		return a.give(m, state.Engine, state.Plan)
	case takeAway:
		if err := a.Engines[state.Engine].Clear(m.name); err != nil {
			return err
		}
		a.Log.Info("the files name this device no more: it was given back", "dev", m.name)
		m.mine = ""
		a.claim()
		return nil
	}
	if m.want == nil {
		m.mine = ""
		a.claim()
		return nil
	}
	m.left(appliedByHand(m.name))
	a.say(m, slog.LevelInfo, "what is in force was applied by hand, and stays until the files are read again")
	m.timing.fine(time.Now())
	return nil
}

// left says why what is in force on a device is not what is wanted: somebody did that by hand.
func (m *memory) left(why string) { m.trouble, m.byHand = why, true }

func appliedByHand(dev string) string {
	return fmt.Sprintf("what is in force was applied by hand on the host, and stays until somebody there takes it away (\"headgate clear --dev %s\") or has the agent read its files again (\"systemctl reload headgate\")", dev)
}

// give applies a plan.
func (a *Agent) give(m *memory, engine group.Engine, p shaper.Plan) error {
	e, ok := a.Engines[engine]
	if !ok {
		return fmt.Errorf("the engine %s is not built into this program: choose another with engine: in %s", engine, m.want.source)
	}
	changes, err := e.Apply(p)
	if err != nil {
		return err
	}
	if mark(p) == mark(m.want.plan) { // what was applied by hand may have other groups
		if err := a.place(m, e); err != nil {
			return err
		}
	}
	now := time.Now()
	m.timing.fine(now)
	switch {
	case len(changes) == 0:
	case m.done == m.want.cause && !m.force:
		m.timing.repaired(now)
		a.Log.Warn("another program changed what is in force here: it was put right", "dev", m.name, "changes", words(changes))
	default:
		a.Log.Info("what the files say is in force", "dev", m.name, "file", m.want.source, "changes", len(changes))
	}
	m.said, m.done, m.force = "", m.want.cause, false
	if mark(p) == mark(m.want.plan) && m.mine != mark(p) {
		m.mine = mark(p)
		a.claim()
	}
	return nil
}

// words are the first few changes.
func words(changes []shaper.Change) string {
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

// Observe reads what is in force on a device, whichever engine put it there; nil
// if nothing of ours is.
func Observe(engines map[group.Engine]shaper.Shaper, dev string) (*shaper.State, error) {
	for _, name := range slices.Sorted(maps.Keys(engines)) {
		state, err := engines[name].Observe(dev)
		if errors.Is(err, shaper.ErrNotShaped) {
			continue
		}
		if err != nil {
			return nil, err
		}
		state.Engine = name
		return &state, nil
	}
	return nil, nil
}

// tellAbsent names the devices that are waited for.
func (a *Agent) tellAbsent(devices []Device) {
	for _, i := range a.set.Interfaces {
		if !slices.ContainsFunc(devices, func(d Device) bool { owner, ok := a.set.For(d.Name); return ok && owner.Dev == i.Dev }) {
			a.Log.Info("waits for a device", "dev", i.Dev, "file", i.Name())
		}
	}
}

// claim tells others what is ours. Without it the agent works, but what it made
// on devices that are taken out of the files while it is stopped stays.
func (a *Agent) claim() {
	made, assigned := map[string]string{}, map[string][]shaper.Assignment{}
	for _, m := range a.devices {
		if len(m.assigned) > 0 {
			assigned[m.name] = m.assigned
		}
		if m.mine != "" {
			made[m.name] = m.mine
		}
	}
	var devs, sources []string
	for _, i := range a.set.Interfaces {
		devs, sources = append(devs, i.Dev), append(sources, i.File)
	}
	if err := a.Claim.write(devs, sources, made, assigned); err != nil {
		a.Log.Warn("what the agent has made cannot be written down", "error", err)
	}
}
