package cli

import (
	"context"
	"fmt"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/explain"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
)

// explainRemote returns the desired state of a host of a service, from which an explanation follows. Classes are
// not known there.
func (a *app) explainRemote(ctx context.Context, t *remoteHost, dev string) (e explain.Source, err error) {
	client, err := t.client()
	if err != nil {
		return e, err
	}
	set, _, err := t.desiredState(ctx, client)
	if err != nil {
		return e, err
	}
	names := t.names(ctx, client)
	if set, err = set.WithAltNames(names); err != nil {
		a.note("headgate: warning: %v", err)
	}
	i, ok := set.For(names.Kernel(dev))
	if !ok {
		return e, fmt.Errorf("the service has no configuration for %s on %s: create it with \"headgate apply --server %s --host %s -f FILE\"", dev, t.host, t.server, t.host)
	}
	if e.Assigned, err = t.connections(ctx, client, i.WrittenDev()); err != nil {
		return e, err
	}
	// Line numbers are left out: the user has never seen the document.
	i.OutRules, i.InRules = nil, nil
	e.File = &i
	a.note("headgate: the result is from the desired state of %s at the service", t.host)
	host, err := api.Decode[api.HostState](client.GetHost(ctx, t.host))
	if err != nil || host.Devices == nil {
		return e, err
	}
	for _, d := range *host.Devices {
		if d.Name == names.Kernel(dev) && d.Error != nil {
			a.note("headgate: warning: %s: the desired state is not in force: %s", dev, *d.Error)
		}
	}
	return e, nil
}

// connections returns the connections that are assigned to groups of an interface.
func (t *remoteHost) connections(ctx context.Context, client *api.Client, dev string) ([]shaper.Assignment, error) {
	all, err := api.ListAll(func(after *string) ([]api.Connection, *string, error) {
		page, err := api.Decode[api.ConnectionList](client.ListConnections(ctx, t.host, dev, &api.ListConnectionsParams{After: after}))
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
