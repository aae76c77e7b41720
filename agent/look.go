package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"

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
	if slices.ContainsFunc(a.strange, func(index int) bool { return !a.suspect(index, now) }) {
		a.suspectAll(now) // one that came and went
	}
	a.strange = nil
	there := map[int]string{}
	for _, d := range devices {
		there[d.Index] = d.Name
	}
	if err := a.name(devices); err != nil {
		a.Log.Error("a device is named twice: what its own name says holds", "mistakes", err.Error())
	}
	if a.fresh {
		a.fresh = false
		a.tellAbsent(devices)
	}
	wanted := wants(a.named, devices, a.Kernel.Cgroup, a.Connections)
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

// name finds the devices that the files name by alternative names. Its error is the same until
// devices or files change.
func (a *Agent) name(devices []Device) (err error) {
	a.named, err = a.set.Named(Names(devices))
	text := fmt.Sprint(err)
	if a.twice == text {
		return nil
	}
	if a.twice = text; err != nil {
		return err
	}
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
	a.sweeps = true
	if !slices.Contains(names, m.name) { // who shapes its successor sweeps up
		a.left = append(a.left, m.name)
	}
}

// look compares devices with what they should have, and does what is to be done: what several need
// of an engine, at the same time. The error is of what none can go on with.
func (a *Agent) look(all []*memory) error {
	for _, m := range all {
		m.trouble, m.byHand = "", false
	}
	errs := a.lookAt(all)
	var fatal error
	for i, m := range all {
		switch err := errs[i]; {
		case errors.Is(err, shaper.ErrPermission):
			fatal = err
		case errors.Is(err, shaper.ErrNoDevice) || errors.Is(err, unix.ENODEV):
			// It went while we looked: the notification is on its way.
			m.timing.failed(time.Now())
		case err != nil:
			m.timing.failed(time.Now())
			m.trouble = err.Error()
			a.say(m, slog.LevelError, "what the files say cannot be put in force, and is tried again", "error", err)
		}
	}
	maps.DeleteFunc(a.devices, func(_ int, m *memory) bool {
		return m.want == nil && m.mine == "" && slices.Contains(all, m)
	})
	a.claim()
	return fatal
}

// lookAt is look; it gives the error of each device.
func (a *Agent) lookAt(all []*memory) []error {
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
	var asked []int // of all
	for i, m := range all {
		switch {
		case slices.Contains(pending, m.name):
			m.timing.waits(time.Now())
			m.left("a change that was applied by hand on the host waits for its confirmation, and is left alone until then: run \"headgate confirm\" there to keep it, or \"headgate confirm --roll-back\" to undo it")
			a.say(m, slog.LevelInfo, "a change waits for its confirmation, and is left alone until then")
		case m.want == nil && a.Unknown != nil && Names(a.there).Of(m.name, a.Unknown()) >= 0:
			m.timing.fine(time.Now())
		default:
			asked = append(asked, i)
		}
	}
	states, failed := ObserveAll(a.Engines, names(pick(all, asked)))
	gifts := map[group.Engine]*gifts{}
	for n, i := range asked {
		if errs[i] = failed[n]; errs[i] == nil {
			errs[i] = a.compare(all[i], states[n], gifts)
		}
	}
	for _, engine := range slices.Sorted(maps.Keys(gifts)) {
		for m, err := range a.give(engine, gifts[engine]) {
			errs[slices.Index(all, m)] = err
		}
	}
	return errs
}

func pick(all []*memory, which []int) (out []*memory) {
	for _, i := range which {
		out = append(out, all[i])
	}
	return out
}

func names(all []*memory) (out []string) {
	for _, m := range all {
		out = append(out, m.name)
	}
	return out
}

// gifts are plans that devices are to have by one engine.
type gifts struct {
	to    []*memory
	plans []shaper.Plan
}

// compare decides what is to be done about a device on which state is in force, and does it, except
// that plans are put among the gifts.
func (a *Agent) compare(m *memory, state *shaper.State, to map[group.Engine]*gifts) error {
	add := func(engine group.Engine, p shaper.Plan) {
		if to[engine] == nil {
			to[engine] = &gifts{}
		}
		to[engine].to, to[engine].plans = append(to[engine].to, m), append(to[engine].plans, p)
	}
	switch decide(m, state) {
	case give:
		if state != nil && state.Engine != m.want.engine {
			if err := a.Engines[state.Engine].Clear(m.name); err != nil {
				return err
			}
		}
		add(m.want.engine, m.want.plan)
	case mend:
		m.left(appliedByHand(m.name))
		add(state.Engine, state.Plan)
	case takeAway:
		if err := a.Engines[state.Engine].Clear(m.name); err != nil {
			return err
		}
		a.Log.Info("the files name this device no more: it was given back", "dev", m.name)
		m.mine = ""
	default:
		if m.want == nil {
			m.mine = ""
			return nil
		}
		m.left(appliedByHand(m.name))
		a.say(m, slog.LevelInfo, "what is in force was applied by hand, and stays until the files are read again")
		m.timing.fine(time.Now())
	}
	return nil
}

// left says why what is in force on a device is not what is wanted: somebody did that by hand.
func (m *memory) left(why string) { m.trouble, m.byHand = why, true }

func appliedByHand(dev string) string {
	return fmt.Sprintf("what is in force was applied by hand on the host, and stays until somebody there takes it away (\"headgate clear --dev %s\") or has the agent read its files again (\"systemctl reload headgate\")", dev)
}

// give applies plans, and gives what failed.
func (a *Agent) give(engine group.Engine, g *gifts) map[*memory]error {
	failed := map[*memory]error{}
	e, ok := a.Engines[engine]
	if !ok {
		for _, m := range g.to {
			failed[m] = fmt.Errorf("the engine %s is not built into this program: choose another with engine: in %s", engine, m.want.source)
		}
		return failed
	}
	for i, done := range shaper.ApplyAll(e, g.plans) {
		m, err := g.to[i], done.Err
		if err == nil {
			err = a.given(m, e, g.plans[i], done.Changes)
		}
		if err != nil {
			failed[m] = err
		}
	}
	return failed
}

// given takes note of a plan that was applied.
func (a *Agent) given(m *memory, e shaper.Shaper, p shaper.Plan, changes []shaper.Change) error {
	if len(changes) > 0 {
		a.sweeps = true // an earlier device of this name may have left something
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
	if mark(p) == mark(m.want.plan) {
		m.mine = mark(p)
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
	states, errs := ObserveAll(engines, []string{dev})
	return states[0], errs[0]
}

// ObserveAll is Observe for several devices.
func ObserveAll(engines map[group.Engine]shaper.Shaper, devs []string) (states []*shaper.State, errs []error) {
	states, errs = make([]*shaper.State, len(devs)), make([]error, len(devs))
	open := make([]int, len(devs)) // those of which no engine has said anything yet
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

// tellAbsent names the devices that are waited for.
func (a *Agent) tellAbsent(devices []Device) {
	for _, i := range a.named.Interfaces {
		if !slices.ContainsFunc(devices, func(d Device) bool { owner, ok := a.named.For(d.Name); return ok && owner.Dev == i.Dev }) {
			a.Log.Info("waits for a device", "dev", i.Called(), "file", i.Name())
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
	for _, i := range a.named.Interfaces {
		devs, sources = append(devs, i.Dev), append(sources, i.File)
	}
	if err := a.Claim.write(devs, sources, made, assigned); err != nil {
		a.Log.Warn("what the agent has made cannot be written down", "error", err)
	}
}
