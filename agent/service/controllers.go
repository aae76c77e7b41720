package service

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"headgate.dev/headgate/agent"
	"headgate.dev/headgate/agent/intent"
	"headgate.dev/headgate/agent/record"
	"headgate.dev/headgate/agent/remote"
	"headgate.dev/headgate/agent/sets"
	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/group"
)

// runJoined runs the agent, its stream to the controllers, the usage record and the connection sets
// until ctx ends.
func (o Options) runJoined(ctx context.Context, ag *agent.Agent) error {
	stored, err := remote.OpenIntent(o.Dir)
	if err != nil {
		return err
	}
	records, err := record.Open(filepath.Join(o.Dir, "record"))
	if err != nil {
		return err
	}
	altNames := altNames(ag.Kernel)
	granted, err := remote.OpenReservations(o.Dir)
	if err != nil {
		return err
	}
	link, running, counters := remote.NewLink(o.Dir, o.Version, stored), sets.New(), newReadings(records)
	desired := &desiredState{files: o.load, stored: stored, altNames: altNames, sets: running.SetDesired}
	self := &host{
		kernel: ag.Kernel, engines: o.Engines, speed: o.Speed, command: o.Command,
		origin: func(names group.AltNames, dev string) intent.Origin {
			if of := desired.origin(names, dev); of != "" || !slices.Contains(granted.Devs(), dev) {
				return of
			}
			return intent.Controller
		},
		states: counters.newest, changed: link.RequestReport,
	}
	measuring := &measurements{turns: newTurns(), command: o.Command, states: counters.newest, altNames: altNames}

	link.Facts = func() *agents.Facts {
		counters.forgetReported()
		return self.facts()
	}
	link.Report = counters.report
	link.Handlers = []remote.Handler{
		remote.OneAtATime(remote.Answer(counters.usage)), // the records of a week take seconds to read
		remote.Answer(setStates(running.States)),
		remote.Answer(relayStates),
		remote.Answer(relayEnded),
		remote.Answer(measuring.probe),
		remote.Answer(measuring.serve),
	}
	running.Report = link.SetCollectiveErrors
	reserving := &reservations{stored: granted, send: link.SendReservationReport}
	refresh := make(chan struct{}, 1)
	link.Changed = func() {
		select {
		case refresh <- struct{}{}:
		default:
		}
	}
	adjusted := make(chan struct{}, 1)
	link.Reservations, link.LimitsChanged = granted, func() {
		select {
		case adjusted <- struct{}{}:
		default:
		}
	}
	interval := make(chan time.Duration, 1)
	link.SetReportInterval = func(every time.Duration) {
		select {
		case <-interval: // replace an interval that the agent has not read yet
		default:
		}
		interval <- every
	}

	ag.Load, ag.Refresh, ag.Latest = desired.load, refresh, desired.latest
	ag.Connections, ag.Unknown = desired.connections, desired.unparsable
	ag.Report = func(errs map[string]string, byHand []string) {
		self.setManuallyChanged(byHand)
		fence := desired.addProblems(errs)
		link.SetApplied(fence, errs)
	}
	ag.Reservations, ag.Adjusted, ag.Limits = reserving.desired, adjusted, granted.Limits
	ag.ReportReservations = func(errs map[string]string) { link.SetReservationsEnforced(reserving.fence, errs) }
	ag.SampleIntervals = interval
	onSample(ag, counters.take)
	onSample(ag, reserving.report)

	ctx, cancel := context.WithCancel(ctx)
	recorded := start(counters.write)
	background := []<-chan struct{}{
		start(func() { running.Run(ctx) }),
		start(func() {
			if err := link.Run(ctx); err != nil {
				slog.Error("connection to the controller ended, the agent continues without it", "error", err)
			}
		}),
	}
	go self.discover(ctx)
	err = ag.Run(ctx)
	cancel()
	for _, ended := range background {
		<-ended
	}
	close(counters.queue) // the loop, which fills it, has ended
	<-recorded
	return errors.Join(err, records.Close())
}

// start calls do in a goroutine and returns a channel that closes when do has returned.
func start(do func()) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		do()
		close(ended)
	}()
	return ended
}

// altNames returns a function that returns the alternative names of this host's devices.
func altNames(kernel agent.Kernel) func() group.AltNames {
	return func() group.AltNames {
		devices, err := kernel.Devices()
		if err != nil {
			slog.Warn("cannot list the alternative names of network devices", "error", err)
		}
		return agent.Names(devices)
	}
}
