package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"

	"headgate/api"
	"headgate/collective/host"
	"headgate/config"
	"headgate/shaper"
)

// setsThere is what the sets of a host of a service are doing, as its agent tells.
func (a *app) setsThere(ctx context.Context, t *there) ([]host.State, error) {
	client, err := t.client()
	if err != nil {
		return nil, err
	}
	got, err := asked[struct {
		Items []host.State
		Cut   bool
	}](client.ListCollectiveStates(ctx, t.host))
	if err == nil && got.Cut {
		a.note("there are more connections than are told: \"headgate collective show --instance service\" on the host shows all")
	}
	return got.Items, err
}

// dismissThere takes sets away from a host of a service; with no names all.
func (a *app) dismissThere(ctx context.Context, t *there, names []string, f format) error {
	client, err := t.client()
	if err != nil {
		return err
	}
	if len(names) == 0 {
		set, _, err := t.policy(ctx, client)
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
		if _, err := asked[struct{}](client.DeleteCollective(ctx, t.host, name, nil)); err != nil {
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

// policyOf is a configuration as the service takes it.
func policyOf(set config.Set) api.Policy {
	var text bytes.Buffer
	for _, i := range set.Interfaces {
		text.WriteString("---\n")
		text.Write(config.Format(i.Interface))
	}
	for _, c := range set.Collectives {
		text.WriteString("---\n")
		text.Write(config.FormatCollective(c.Policy))
	}
	return api.Policy{Text: text.String()}
}

// setSteps says which sets are others than before.
func setSteps(before, after config.Set) (steps []step) {
	for _, c := range after.Collectives {
		s := step{Set: c.Name, Changes: []shaper.Change{}}
		i := slices.IndexFunc(before.Collectives, func(b config.Collective) bool { return b.Name == c.Name })
		switch {
		case i < 0:
			s.Changes = append(s.Changes, shaper.Change{Verb: "add", Object: "set " + c.Name})
		case !bytes.Equal(config.FormatCollective(before.Collectives[i].Policy), config.FormatCollective(c.Policy)):
			s.Changes = append(s.Changes, shaper.Change{Verb: "change", Object: "set " + c.Name})
		}
		steps = append(steps, s)
	}
	return steps
}
