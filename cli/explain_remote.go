package cli

import (
	"context"
	"fmt"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/explain"
)

// explainRemote returns the desired state of a host of a service, from which an explanation follows. Classes are
// not known there.
func (a *app) explainRemote(ctx context.Context, t *remoteHost, dev string) (e explain.Source, err error) {
	h, err := t.open()
	if err != nil {
		return e, err
	}
	set, _, err := h.DesiredState(ctx)
	if err != nil {
		return e, err
	}
	names := h.AltNames(ctx)
	if set, err = set.WithAltNames(names); err != nil {
		a.note("headgate: warning: %v", err)
	}
	i, ok := set.For(names.Kernel(dev))
	if !ok {
		return e, fmt.Errorf("the service has no configuration for %s on %s: create it with \"headgate apply --server %s --host %s -f FILE\"", dev, t.host, t.server, t.host)
	}
	if e.Assigned, err = h.Connections(ctx, i.WrittenDev()); err != nil {
		return e, err
	}
	// Line numbers are left out: the user has never seen the document.
	i.OutRules, i.InRules = nil, nil
	e.File = &i
	a.note("headgate: the result is from the desired state of %s at the service", t.host)
	host, err := api.Decode[api.HostState](h.Client.GetHost(ctx, h.Name))
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
