package cli

import (
	"context"
	"fmt"
	"io"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/collective/host"
)

// serverSets returns the state of the sets of a host of a service, as reported by the host's agent.
func (a *app) serverSets(ctx context.Context, t *remoteHost) ([]host.State, error) {
	h, err := t.open()
	if err != nil {
		return nil, err
	}
	got, err := api.Decode[struct {
		Items     []host.State
		Truncated bool
	}](h.Client.ListCollectiveStates(ctx, h.Name))
	if err == nil && got.Truncated {
		a.note("the list of connections is truncated: run \"headgate collective show --instance service\" on the host for all")
	}
	return got.Items, err
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
