package cli

import (
	"context"
	"errors"
	"slices"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/config"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/hostsurvey/placement"
	"headgate.dev/headgate/unit"
)

// checkOnServer has the controller validate a configuration for a host, and warns of conflicts with the
// host's reported state.
func (a *app) checkOnServer(ctx context.Context, t *remoteHost, set config.Set) error {
	client, err := t.client()
	if err != nil {
		return err
	}
	if _, err := t.putPolicy(ctx, client, set, nil, true); err != nil {
		return err
	}
	return a.warnConflicts(ctx, t, client, set)
}

// warnConflicts warns of conflicts between a configuration and the devices that the host's agent reported.
func (a *app) warnConflicts(ctx context.Context, t *remoteHost, client *api.Client, set config.Set) error {
	host, err := api.Decode[api.HostState](client.GetHost(ctx, t.host))
	if err != nil {
		return err
	}
	if host.Devices == nil {
		a.note("headgate: warning: agent of %s is disconnected: cannot check the devices", t.host)
		return nil
	}
	a.warnHostState(t.host, set, *host.Devices)
	return nil
}

// putPolicy replaces the policy of a host and returns the resulting configuration. With a tag it fails if
// the policy's ETag is another one. With dry it only validates.
func (t *remoteHost) putPolicy(ctx context.Context, client *api.Client, set config.Set, tag *string, dry bool) (config.Set, error) {
	p, err := api.Decode[api.Policy](client.PutPolicy(ctx, t.host, &api.PutPolicyParams{DryRun: &dry, IfMatch: tag}, policyOf(set)))
	if err != nil {
		return config.Set{}, err
	}
	return config.Parse("service", []byte(p.Text))
}

// warnHostState warns of devices that the host does not have, of devices that its local files configure, and
// of limits above the speed of its links.
func (a *app) warnHostState(host string, set config.Set, devices api.HostDevices) {
	// A device without Up does not exist on the host: the service lists it because it has a document.
	devices = slices.DeleteFunc(slices.Clone(devices), func(d api.HostDevice) bool { return d.Up == nil })
	names := namesOf(devices)
	set, err := set.WithAltNames(names)
	if twice := (config.Errors{}); errors.As(err, &twice) {
		for _, m := range twice {
			a.note("%s:%d: %s: warning: on %s %s", m.File, m.Line, m.Key, host, m.Message)
		}
	}
	for _, i := range set.Interfaces {
		if !group.IsPattern(i.Dev) && !slices.ContainsFunc(devices, func(d api.HostDevice) bool { return d.Name == names.Kernel(i.Dev) }) {
			a.note("headgate: warning: %s: no such device on host %s", i.Dev, host)
		}
	}
	var all []string
	speeds := map[string]unit.Rate{}
	for _, d := range devices {
		all = append(all, d.Name)
		if d.Speed != nil {
			speeds[d.Name], _ = unit.ParseRate(*d.Speed)
		}
	}
	a.warn(placement.Speeds(set, all, func(dev string) (unit.Rate, bool) { return speeds[dev], speeds[dev] > 0 }))
	for _, d := range devices {
		if _, ok := set.For(d.Name); ok && d.Owner != nil && *d.Owner == api.Local {
			a.note("headgate: warning: %s: configured locally on host %s, by a file or by hand, which takes precedence", d.Name, host)
		}
	}
}
