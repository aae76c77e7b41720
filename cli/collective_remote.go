package cli

import (
	"context"
	"fmt"
	"io"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/collective/host"
	"headgate.dev/headgate/unit"
)

// serverSets returns the state of the sets of a host of a service, as reported by the host's agent.
func (a *app) serverSets(ctx context.Context, t *remoteHost) ([]host.State, error) {
	h, err := t.open()
	if err != nil {
		return nil, err
	}
	got, err := api.Decode[struct {
		Items     []serverSet
		Truncated bool
	}](h.Client.ListCollectiveStates(ctx, h.Name))
	if err == nil && got.Truncated {
		a.note("the list of connections is truncated: run \"headgate collective show --instance service\" on the host for all")
	}
	states := []host.State{}
	for _, s := range got.Items {
		states = append(states, s.state())
	}
	return states, err
}

// serverSet is a set as a service shows it. The numbers of its connections have other names than in a
// program's own state.
type serverSet struct {
	host.State
	Connections []struct {
		host.ConnectionState
		LearnedBps     uint64 `json:"learned_bps"`
		RateBps        uint64 `json:"rate_bps"`
		WindowCapBytes uint64 `json:"window_cap_bytes"`
		PacingCapBps   uint64 `json:"pacing_cap_bps"`
	} `json:"connections"`
}

func (s serverSet) state() host.State {
	out := s.State
	for _, c := range s.Connections {
		one := c.ConnectionState
		one.Needs, one.Rate, one.Window, one.Pace = unit.Rate(c.LearnedBps), unit.Rate(c.RateBps), unit.Bytes(c.WindowCapBytes), unit.Rate(c.PacingCapBps)
		out.Connections = append(out.Connections, one)
	}
	return out
}

// deleteSetsOnServer deletes the named sets from a host of a service; all sets if there are no names.
func (a *app) deleteSetsOnServer(ctx context.Context, t *remoteHost, names []string, f format) error {
	h, err := t.open()
	if err != nil {
		return err
	}
	if len(names) == 0 {
		set, _, err := h.DesiredState(ctx)
		if err != nil {
			return err
		}
		for _, c := range set.Collectives {
			names = append(names, c.Name)
		}
	}
	type gone struct {
		Set     string `json:"set"`
		Cleared bool   `json:"cleared"`
	}
	list := []gone{}
	for _, name := range names {
		if _, err := api.Decode[struct{}](h.Client.DeleteCollective(ctx, h.Name, name, nil)); err != nil {
			return err
		}
		list = append(list, gone{name, true})
	}
	return a.print(f, list, func(w io.Writer) error {
		if len(list) == 0 {
			_, err := fmt.Fprintln(w, "nothing to clear")
			return err
		}
		for _, g := range list {
			fmt.Fprintf(w, "set %s: cleared\n", g.Set)
		}
		return nil
	})
}
