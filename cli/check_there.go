package cli

import (
	"context"
	"errors"
	"slices"

	"headgate/api"
	"headgate/config"
	"headgate/group"
	"headgate/unit"
)

// checkThere asks a service whether it would take a configuration for a host, and tells what its
// agent says against it.
func (a *app) checkThere(ctx context.Context, t *there, set config.Set) error {
	client, err := t.client()
	if err != nil {
		return err
	}
	if _, err := t.put(ctx, client, set, nil, true); err != nil {
		return err
	}
	return a.warnThere(ctx, t, client, set)
}

// warnThere tells what the agent of a host says against a configuration.
func (a *app) warnThere(ctx context.Context, t *there, client *api.Client, set config.Set) error {
	host, err := asked[api.HostState](client.GetHost(ctx, t.host))
	if err != nil {
		return err
	}
	if host.Devices == nil {
		a.note("headgate: warning: the agent of %s is not connected: whether it has these devices is not known", t.host)
		return nil
	}
	a.warnHost(t.host, set, *host.Devices)
	return nil
}

// put makes a host what a set says, if it still has what has that tag, and gives what the set has come
// to; with dry it only asks whether that may be.
func (t *there) put(ctx context.Context, client *api.Client, set config.Set, tag *string, dry bool) (config.Set, error) {
	p, err := asked[api.Policy](client.PutPolicy(ctx, t.host, &api.PutPolicyParams{DryRun: &dry, IfMatch: tag}, policyOf(set)))
	if err != nil {
		return config.Set{}, err
	}
	return config.Parse("service", []byte(p.Text))
}

// warnHost tells of devices that a host does not have, that its own files divide, and of limits that
// its links cannot give.
func (a *app) warnHost(host string, set config.Set, devices api.HostDevices) {
	// What is listed only because something is wanted of it is not there.
	devices = slices.DeleteFunc(slices.Clone(devices), func(d api.HostDevice) bool { return d.Up == nil })
	names := namesOf(devices)
	set, err := set.Named(names)
	if twice := (config.Mistakes{}); errors.As(err, &twice) {
		for _, m := range twice {
			a.note("%s:%d: %s: warning: on %s %s", m.File, m.Line, m.Key, host, m.Message)
		}
	}
	for _, i := range set.Interfaces {
		if !group.IsPattern(i.Dev) && !slices.ContainsFunc(devices, func(d api.HostDevice) bool { return d.Name == names.Kernel(i.Dev) }) {
			a.note("headgate: warning: %s: %s has no such device now", i.Dev, host)
		}
	}
	named := map[string]unit.Rate{}
	remote := *a
	remote.devices = func() (all []string, _ error) {
		for _, d := range devices {
			all = append(all, d.Name)
			if d.Speed != nil {
				named[d.Name], _ = unit.ParseRate(*d.Speed)
			}
		}
		return all, nil
	}
	remote.speed = func(dev string) (unit.Rate, bool) { return named[dev], named[dev] > 0 }
	remote.warnSpeeds(set)
	for _, d := range devices {
		if _, ok := set.For(d.Name); ok && d.Owner != nil && *d.Owner == api.Local {
			a.note("headgate: warning: %s: files of %s divide it, or somebody did there by hand: that is in force", d.Name, host)
		}
	}
}
