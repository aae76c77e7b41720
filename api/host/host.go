package host

import (
	"context"
	"errors"
	"fmt"
	"slices"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
)

// Host is a host of a service, by its name there.
type Host struct {
	Name   string
	Client *api.Client
}

// AltNames returns the alternative names of the host's devices. For a tenant, who may not read the host,
// they are those of devices with traffic. There are none while the host's agent is disconnected.
func (h Host) AltNames(ctx context.Context) group.AltNames {
	if host, err := api.Decode[api.HostState](h.Client.GetHost(ctx, h.Name)); err == nil && host.Devices != nil {
		return altNamesOf(*host.Devices)
	}
	none := []string{"-"} // no group has this name, so the response has only totals
	rates, _ := api.Decode[api.RateList](h.Client.GetRates(ctx, h.Name, &api.GetRatesParams{Group: &none}))
	return altNamesIn(rates)
}

func altNamesOf(devices api.HostDevices) group.AltNames {
	out := group.AltNames{}
	for _, d := range devices {
		if d.Altnames != nil {
			out[d.Name] = *d.Altnames
		}
	}
	return out
}

func altNamesIn(rates api.RateList) group.AltNames {
	out := group.AltNames{}
	if rates.Totals != nil {
		for _, l := range *rates.Totals {
			if l.Altnames != nil {
				out[l.Dev] = *l.Altnames
			}
		}
	}
	return out
}

// Interfaces returns the names of all interfaces of the host at the service.
func (h Host) Interfaces(ctx context.Context) ([]string, error) {
	all, err := api.ListAll(func(after *string) ([]api.Interface, *string, error) {
		page, err := api.Decode[api.InterfaceList](h.Client.ListInterfaces(ctx, h.Name, &api.ListInterfacesParams{After: after}))
		return page.Items, page.Next, err
	})
	names := []string{}
	for _, i := range all {
		if i.Dev != nil {
			names = append(names, *i.Dev)
		}
	}
	return names, err
}

// Resolve returns the interface that dev selects: by its name at the service, or by another name of its
// device. A dev without an interface is returned by the kernel's name.
func (h Host) Resolve(ctx context.Context, dev string) (string, error) {
	all, err := h.Interfaces(ctx)
	if err != nil || slices.Contains(all, dev) {
		return dev, err
	}
	names := h.AltNames(ctx)
	is := names.Kernel(dev)
	if n := slices.IndexFunc(all, func(name string) bool { return names.Kernel(name) == is }); n >= 0 {
		is = all[n]
	}
	return is, nil
}

// Connections returns the connections that are assigned to groups of an interface.
func (h Host) Connections(ctx context.Context, dev string) ([]shaper.Assignment, error) {
	all, err := api.ListAll(func(after *string) ([]api.Connection, *string, error) {
		page, err := api.Decode[api.ConnectionList](h.Client.ListConnections(ctx, h.Name, dev, &api.ListConnectionsParams{After: after}))
		return page.Items, page.Next, err
	})
	if err != nil {
		return nil, err
	}
	out := []shaper.Assignment{}
	for _, c := range all {
		text := ""
		if c.Connection != nil {
			text = *c.Connection
		}
		proto, a, b, err := group.ParseConn(text)
		if err != nil {
			return nil, err
		}
		out = append(out, shaper.Assignment{Conn: shaper.Conn{Proto: proto, A: a, B: b}, Group: c.Group})
	}
	return out, nil
}

// Assign assigns connections to a group of an interface. With an empty path it unassigns them.
func (h Host) Assign(ctx context.Context, dev, path string, list []shaper.Conn) (failed error) {
	for _, conn := range list {
		var err error
		if path == "" {
			_, err = api.Decode[struct{}](h.Client.DeleteConnection(ctx, h.Name, dev, conn.String(), nil))
		} else {
			_, err = api.Decode[api.Connection](h.Client.PutConnection(ctx, h.Name, dev, conn.String(), nil, api.Connection{Group: path}))
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%v: %w", conn, err))
		}
	}
	return failed
}
