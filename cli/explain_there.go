package cli

import (
	"context"
	"fmt"

	"headgate/api"
	"headgate/group"
	"headgate/shaper"
)

// explainThere says what a packet is to get on a host of a service: what is wanted, of which classes
// are not known.
func (a *app) explainThere(ctx context.Context, t *there, dev string) (e explainer, err error) {
	client, err := t.client()
	if err != nil {
		return e, err
	}
	set, _, err := t.policy(ctx, client)
	if err != nil {
		return e, err
	}
	names := t.names(ctx, client)
	if set, err = set.Named(names); err != nil {
		a.note("headgate: warning: %v", err)
	}
	i, ok := set.For(names.Kernel(dev))
	if !ok {
		return e, fmt.Errorf("the service wants nothing of %s on %s: \"headgate apply --server %s --host %s -f FILE\" says what", dev, t.host, t.server, t.host)
	}
	if e.assigned, err = t.connections(ctx, client, i.Called()); err != nil {
		return e, err
	}
	// Lines are those of a document that the user has never seen.
	i.OutRules, i.InRules = nil, nil
	e.file = &i
	a.note("headgate: this is what the service wants of %s", t.host)
	host, err := asked[api.HostState](client.GetHost(ctx, t.host))
	if err != nil || host.Devices == nil {
		return e, err
	}
	for _, d := range *host.Devices {
		if d.Name == names.Kernel(dev) && d.Trouble != nil {
			a.note("headgate: warning: %s: it is not in force: %s", dev, *d.Trouble)
		}
	}
	return e, nil
}

// connections are those that were put in groups of an interface.
func (t *there) connections(ctx context.Context, client *api.Client, dev string) ([]shaper.Assignment, error) {
	all, err := every(func(after *string) ([]api.Connection, *string, error) {
		page, err := asked[api.ConnectionList](client.ListConnections(ctx, t.host, dev, &api.ListConnectionsParams{After: after}))
		return page.Items, page.Next, err
	})
	if err != nil {
		return nil, err
	}
	out := []shaper.Assignment{}
	for _, c := range all {
		proto, a, b, err := group.ParseConn(orEmpty(c.Connection))
		if err != nil {
			return nil, err
		}
		out = append(out, shaper.Assignment{Conn: shaper.Conn{Proto: proto, A: a, B: b}, Group: c.Group})
	}
	return out, nil
}
