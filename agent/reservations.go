package agent

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"headgate.dev/headgate/agent/reserved"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// reservationSource is the source of a plan that has reservations alone.
const reservationSource = "reservations of the controller"

// limitsInterval is the interval at which changed limits are written to the state file. The kernel has them at once, and
// keeps them without an agent; the file is for a device that is created again meanwhile. A second costs nothing, where
// each change, ten in a second, would write the file with all assigned connections.
const limitsInterval = time.Second

// reserve adds the reservations of the host to the desired states of its devices.
func (a *Agent) reserve(wanted map[int]DesiredState, devices []Device) {
	if a.Reservations == nil {
		return
	}
	a.reserved, a.refused = a.Reservations(), map[string]string{}
	for _, dev := range a.reserved.Devs() {
		on := a.reserved.On(dev)
		n := slices.IndexFunc(devices, func(d Device) bool { return d.Name == dev })
		if n < 0 {
			a.refuse(on, fmt.Errorf("the host has no interface %s: it appears with the interface", dev))
			continue
		}
		w, configured := wanted[devices[n].Index]
		if err := a.cannotReserve(devices[n], w, configured); err != nil {
			a.refuse(on, err)
			continue
		}
		if w, ok := a.withReservations(w, configured, devices[n], on); ok {
			wanted[devices[n].Index] = w
		}
	}
}

// cannotReserve returns why no reservation can have a group on a device, or nil.
func (a *Agent) cannotReserve(d Device, w DesiredState, configured bool) error {
	switch {
	case !configured && a.Unknown != nil && Names(a.devicesSeen).Of(d.Name, a.Unknown()) >= 0:
		return fmt.Errorf("this version of the agent cannot parse the configuration of %s, which stays as it is: upgrade the agent", d.Name)
	case !configured:
		w.engine = group.HTB
	case w.plan.Perspective == group.Guest:
		return fmt.Errorf("%s is configured with perspective: guest, and its packets go to a guest and not to the network: reserve on the interface to the network", d.Name)
	}
	if _, ok := a.Engines[w.engine].(shaper.Adjuster); !ok {
		return fmt.Errorf("the engine %s of %s cannot change limits while packets pass: write engine: %s", w.engine, d.Name, group.HTB)
	}
	return nil
}

// withReservations returns the desired state of a device with reservations, and false if none of them has a group.
func (a *Agent) withReservations(w DesiredState, configured bool, d Device, on []reserved.Reservation) (DesiredState, bool) {
	if !configured {
		w = DesiredState{engine: group.HTB, source: reservationSource, plan: shaper.Plan{Dev: d.Name, Perspective: group.Host}}
		w.cause = fmt.Sprint(d.Index, d.MTU, d.Up, w.engine)
	}
	joined, refused := reserved.Join(w.plan.Out, a.reserved.Lines[d.Name], on)
	for _, r := range on {
		if err := refused[r.Key]; err != nil {
			a.refuse([]reserved.Reservation{r}, err)
		} else {
			w.reserved = append(w.reserved, r.Key)
		}
	}
	w.plan.Out = joined
	w.cause += " " + planHash(w.plan)
	return w, len(w.reserved) > 0
}

// refuse records why reservations have no group.
func (a *Agent) refuse(list []reserved.Reservation, err error) {
	for _, r := range list {
		a.refused[r.Key] = err.Error()
	}
}

// reservationProblems returns the reservations that are not in force, with the reasons, by key.
func (a *Agent) reservationProblems() map[string]string {
	out := maps.Clone(a.refused)
	for _, m := range a.devices {
		if m.desired == nil || m.problem == "" {
			continue
		}
		for _, key := range m.desired.reserved {
			out[key] = m.problem
		}
	}
	return out
}

// limits returns the limit of each reservation, by key.
func (a *Agent) limits() map[string]unit.Rate {
	out := make(map[string]unit.Rate, len(a.reserved.Reservations))
	for _, r := range a.reserved.Reservations {
		out[r.Key] = r.Limit
		if limit, ok := a.StateFile.earlier.Limits[r.Key]; ok && !a.reserved.Received {
			out[r.Key] = limit
		}
	}
	return out
}

// adjust puts changed limits in force. Nothing else of the plans is compared.
func (a *Agent) adjust() {
	limits := a.Limits()
	a.reserved.Received = true               // only controllers change limits
	for n := range a.reserved.Reservations { // a list that is newer than the last device listing follows with Refresh
		r := &a.reserved.Reservations[n]
		if limit, ok := limits[r.Key]; ok {
			r.Limit = limit
		}
	}
	for _, index := range slices.Sorted(maps.Keys(a.devices)) {
		m := a.devices[index]
		if m.desired == nil || m.appliedCause != m.desired.cause || m.byHand {
			continue // the limits follow when the plan is applied
		}
		if err := a.setLimits(m); err != nil {
			a.logOnce(m, slog.LevelWarn, "cannot change the limits of reservations, checking the device", "error", err)
			m.schedule.suspect(time.Now())
		}
	}
	if a.publishAt.IsZero() {
		a.publishAt = time.Now().Add(limitsInterval)
	}
}

// setLimits sets the limits of a device's reservations that differ from those that the agent has set.
func (a *Agent) setLimits(m *deviceState) error {
	if len(m.desired.reserved) == 0 {
		return nil
	}
	limits, changed := a.limits(), map[string]unit.Rate{}
	for _, key := range m.desired.reserved {
		path := reserved.Path(key)
		if was, ok := m.limits[path]; !ok || was != limits[key] {
			changed[path] = limits[key]
		}
	}
	if len(changed) == 0 {
		return nil
	}
	if err := a.Engines[m.desired.engine].(shaper.Adjuster).Adjust(m.name, changed); err != nil {
		m.limits = nil
		return err
	}
	if m.limits == nil {
		m.limits = map[string]unit.Rate{}
	}
	maps.Copy(m.limits, changed)
	return nil
}

// publishReservations adds the reservations to the content of the state file. A device has an entry of its own, also if a
// pattern configures it.
func (a *Agent) publishReservations(content *stateFileContent) {
	a.publishAt = time.Time{}
	if a.Reservations == nil {
		return
	}
	content.Limits = a.limits()
	for _, index := range slices.Sorted(maps.Keys(a.devices)) {
		m := a.devices[index]
		if m.desired == nil || len(m.desired.reserved) == 0 {
			continue
		}
		origins := map[string]group.Origin{}
		for _, key := range m.desired.reserved {
			origins["out/"+reserved.Path(key)] = group.OriginReservation
		}
		source := reservationSource
		if i, configured := a.named.For(m.name); configured {
			source = i.File
			maps.Copy(origins, i.Origins())
		}
		if !slices.Contains(content.Devs, m.name) {
			content.Devs, content.Sources = append(content.Devs, m.name), append(content.Sources, source)
		}
		content.Origins[m.name] = origins
	}
}
