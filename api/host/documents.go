package host

import (
	"context"
	"slices"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/config"
	"headgate.dev/headgate/internal/sleep"
)

// Documents returns the state of each document of the host.
func (h Host) Documents(ctx context.Context) ([]api.DocumentState, error) {
	got, err := api.Decode[api.HostState](h.Client.GetHost(ctx, h.Name))
	if err != nil || got.Documents == nil {
		return nil, err
	}
	return *got.Documents, nil
}

// pollDocuments is how often AwaitEnforced reads the states.
const pollDocuments = 200 * time.Millisecond

// AwaitEnforced waits until the documents of a configuration are in force that a change has written, or until the host refuses one, or ctx ends. before are
// the states before the change. It returns the documents that are not in force.
func (h Host) AwaitEnforced(ctx context.Context, set config.Set, before []api.DocumentState) (left []api.DocumentState, err error) {
	for {
		now, err := h.Documents(ctx)
		if err != nil && (ctx.Err() == nil || len(left) == 0) {
			return nil, err
		} else if err != nil {
			return left, nil
		}
		var final bool
		left, final = notEnforced(set, before, now)
		if len(left) == 0 || final || !sleep.Until(ctx, time.Now().Add(pollDocuments)) {
			return left, nil
		}
	}
}

// notEnforced returns the documents of a configuration that are not in force; final is true if waiting changes nothing.
func notEnforced(set config.Set, before, now []api.DocumentState) (left []api.DocumentState, final bool) {
	final = true
	for _, d := range now {
		if !contains(set, d) {
			continue
		}
		was := slices.IndexFunc(before, func(b api.DocumentState) bool { return b.Kind == d.Kind && b.Name == d.Name })
		if was >= 0 && before[was].Revision == d.Revision {
			d.State, d.Reason = api.DocumentApplying, nil // the controller has not read the change yet
		}
		if d.State == api.DocumentEnforced {
			continue
		}
		left = append(left, d)
		final = final && (d.State == api.DocumentRefused || d.State == api.DocumentOverridden)
	}
	return left, final && len(left) > 0
}

func contains(set config.Set, d api.DocumentState) bool {
	if d.Kind == api.DocumentOfCollective {
		return slices.ContainsFunc(set.Collectives, func(c config.Collective) bool { return c.Name == d.Name })
	}
	return slices.ContainsFunc(set.Interfaces, func(i config.Interface) bool { return i.Dev == d.Name })
}
