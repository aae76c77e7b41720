package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/config"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/hostsurvey/placement"
	"headgate.dev/headgate/unit"
)

// DesiredState returns the desired state of the host, and its ETag, which is nil if there is none.
func (h Host) DesiredState(ctx context.Context) (set config.Set, tag *string, err error) {
	p, tag, err := api.DecodeWithETag[api.Policy](h.Client.GetPolicy(ctx, h.Name))
	if err == nil && p.Text != "" {
		set, err = config.Parse("service", []byte(p.Text))
	}
	return set, tag, err
}

// Put replaces the desired state and returns the resulting one. With a tag it fails if the ETag is another one. With
// dry it only validates.
func (h Host) Put(ctx context.Context, set config.Set, tag *string, dry bool) (config.Set, error) {
	p, err := api.Decode[api.Policy](h.Client.PutPolicy(ctx, h.Name, &api.PutPolicyParams{DryRun: &dry, IfMatch: tag}, policyOf(set)))
	if err != nil {
		return config.Set{}, err
	}
	return config.Parse("service", []byte(p.Text))
}

// policyOf formats a configuration as an api.Policy.
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

// applyTries is the number of tries of a change, if other clients, such as tenants, change the host
// between the read and the write.
const applyTries = 10

// Apply replaces the desired state, and returns the states before and after. With dry it only validates.
func (h Host) Apply(ctx context.Context, set config.Set, dry bool) (before, after config.Set, err error) {
	for try := 1; ; try++ {
		var tag *string
		if before, tag, err = h.DesiredState(ctx); err != nil {
			return before, after, err
		}
		// The precondition makes sure that what changed between both states are this caller's changes.
		after, err = h.Put(ctx, set, tag, dry)
		if !errors.Is(err, api.ErrPreconditionFailed) {
			return before, after, err
		} else if try == applyTries {
			return before, after, fmt.Errorf("cannot apply to %s: other clients keep changing its configuration; nothing was changed: run apply again: %w", h.Name, err)
		}
	}
}

// Conflicts are the conflicts between a configuration and the devices that the host's agent reported.
type Conflicts struct {
	// Disconnected is true if the agent is disconnected: the devices are unknown, and all else is empty.
	Disconnected bool
	// Duplicate lists the documents whose device another document configures under another name.
	Duplicate config.Errors
	// Missing lists the devices of the configuration that the host does not have, as the configuration names them.
	Missing []string
	// Speeds lists the limits above the speed of a link.
	Speeds []placement.Warning
	// Local lists the devices that are configured on the host itself, which takes precedence.
	Local []string
}

// Conflicts returns the conflicts between a configuration and the devices that the host's agent reported.
func (h Host) Conflicts(ctx context.Context, set config.Set) (Conflicts, error) {
	host, err := api.Decode[api.HostState](h.Client.GetHost(ctx, h.Name))
	if err != nil {
		return Conflicts{}, err
	}
	if host.Devices == nil {
		return Conflicts{Disconnected: true}, nil
	}
	return conflicts(set, *host.Devices), nil
}

func conflicts(set config.Set, devices api.HostDevices) (out Conflicts) {
	// A device without Up does not exist on the host: the service lists it because it has a document.
	devices = slices.DeleteFunc(slices.Clone(devices), func(d api.HostDevice) bool { return d.Up == nil })
	names := altNamesOf(devices)
	set, err := set.WithAltNames(names)
	errors.As(err, &out.Duplicate)
	for _, i := range set.Interfaces {
		if !group.IsPattern(i.Dev) && !slices.ContainsFunc(devices, func(d api.HostDevice) bool { return d.Name == names.Kernel(i.Dev) }) {
			out.Missing = append(out.Missing, i.Dev)
		}
	}
	var all []string
	speeds := map[string]unit.Rate{}
	for _, d := range devices {
		all = append(all, d.Name)
		if d.SpeedBps != nil {
			speeds[d.Name] = unit.Rate(*d.SpeedBps)
		}
		if _, ok := set.For(d.Name); ok && d.Owner != nil && *d.Owner == api.Local {
			out.Local = append(out.Local, d.Name)
		}
	}
	out.Speeds = placement.Speeds(set, all, func(dev string) (unit.Rate, bool) { return speeds[dev], speeds[dev] > 0 })
	return out
}
