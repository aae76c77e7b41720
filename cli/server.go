package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/config"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/view"
)

// remoteHost selects a host of a service, for commands that can act on it instead of this machine.
type remoteHost struct{ server, host string }

// serverFlags adds the flags --server and --host.
func serverFlags(c *cobra.Command) *remoteHost {
	t := &remoteHost{}
	c.Flags().StringVar(&t.server, "server", "", "act on a host of the service at this `URL`, or of this login profile, instead of this machine")
	c.Flags().StringVar(&t.host, "host", "", "the `HOST`, by its name at the service")
	completeFlag(c, "host", completeHosts(&t.server))
	c.MarkFlagsRequiredTogether("server", "host")
	return t
}

// rejectFlags returns a usage error if one of these flags is set, which apply only to this machine.
func (t *remoteHost) rejectFlags(c *cobra.Command, flags ...string) error {
	for _, name := range flags {
		if f := c.Flag(name); f != nil && f.Changed {
			return usageError{fmt.Errorf("--%s cannot be used with --server: remove one of them", name), c.CommandPath()}
		}
	}
	return nil
}

// isSet reports whether --server is set.
func (t *remoteHost) isSet() bool { return t.server != "" }

func (t *remoteHost) client() (*api.Client, error) { return service(t.server) }

// names returns the alternative names of the host's devices. For a tenant, who may not read the host,
// they are those of devices with traffic. There are none while the host's agent is disconnected.
func (t *remoteHost) names(ctx context.Context, client *api.Client) group.AltNames {
	if host, err := api.Decode[api.HostState](client.GetHost(ctx, t.host)); err == nil && host.Devices != nil {
		return namesOf(*host.Devices)
	}
	none := []string{"-"} // no group has this name, so the response has only totals
	rates, _ := api.Decode[api.RateList](client.GetRates(ctx, t.host, &api.GetRatesParams{Group: &none}))
	return namesIn(rates)
}

func namesOf(devices api.HostDevices) group.AltNames {
	out := group.AltNames{}
	for _, d := range devices {
		if d.Altnames != nil {
			out[d.Name] = *d.Altnames
		}
	}
	return out
}

func namesIn(rates api.RateList) group.AltNames {
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

// desiredState returns the desired state of a host, and its ETag.
func (t *remoteHost) desiredState(ctx context.Context, client *api.Client) (set config.Set, tag *string, err error) {
	p, tag, err := decodeWithETag[api.Policy](client.GetPolicy(ctx, t.host))
	if err == nil && p.Text != "" {
		set, err = config.Parse("service", []byte(p.Text))
	}
	return set, tag, err
}

// applyTries is the number of tries of a change, if other clients, such as tenants, change the host
// between the read and the write.
const applyTries = 10

// applyRemote sets the desired state of a host of a service from files. With dry it only prints the
// changes.
func (a *app) applyRemote(c *cobra.Command, t *remoteHost, files []string, dry bool, f format) error {
	set, err := a.load(c, files, false)
	if err == nil && len(set.Interfaces) == 0 && len(set.Collectives) == 0 {
		err = config.Errors{{File: strings.Join(files, " "), Message: "no document for a host: write documents with kind: Interface or kind: Collective"}}
	}
	if err != nil {
		return err
	}
	client, err := t.client()
	if err != nil {
		return err
	}
	var before, after config.Set
	for try := 1; ; try++ {
		var tag *string
		if before, tag, err = t.desiredState(c.Context(), client); err != nil {
			return err
		}
		// The precondition makes sure that the printed changes are the actual ones.
		after, err = t.putPolicy(c.Context(), client, set, tag, dry)
		if !errors.Is(err, api.ErrPreconditionFailed) {
			break
		} else if try == applyTries {
			return fmt.Errorf("cannot apply to %s: other clients keep changing its configuration; nothing was changed: run apply again: %w", t.host, err)
		}
	}
	if err != nil {
		return err
	}
	a.warnPlacement(set, false)
	if err := a.warnConflicts(c.Context(), t, client, set); err != nil {
		a.note("headgate: warning: cannot check the configuration with the agent of %s: %v", t.host, err)
	}
	steps := append(interfaceSteps(before, after), setSteps(before, after)...)
	return a.print(f, steps, func(w io.Writer) error { printSteps(w, steps); return nil })
}

// interfaceSteps returns the differences of each interface of after from before, and of those that after has no longer.
func interfaceSteps(before, after config.Set) []step {
	steps := []step{}
	find := func(set config.Set, dev string) (config.Interface, bool) {
		i := slices.IndexFunc(set.Interfaces, func(i config.Interface) bool { return i.Dev == dev })
		if i < 0 {
			return config.Interface{}, false
		}
		return set.Interfaces[i], true
	}
	add := func(dev string, engine group.Engine) {
		was, had := find(before, dev)
		is, has := find(after, dev)
		s := step{Dev: dev, Engine: engine, Changes: []shaper.Change{}}
		if had && has {
			s.Changes = append(s.Changes, group.DiffSettings(was.Interface, is.Interface)...)
		}
		s.Changes = append(s.Changes, group.Diff("out", was.OutTree, is.OutTree)...)
		s.Changes = append(s.Changes, group.Diff("in", was.InTree, is.InTree)...)
		steps = append(steps, s)
	}
	for _, i := range after.Interfaces {
		add(i.Dev, i.Engine)
	}
	for _, i := range before.Interfaces {
		if _, kept := find(after, i.Dev); !kept {
			add(i.Dev, i.Engine)
		}
	}
	return steps
}

// ratesOf returns the parameters for the rates of a device, by any of its names, or of all devices.
func ratesOf(dev string) *api.GetRatesParams {
	if dev == "all" {
		return nil
	}
	return &api.GetRatesParams{Dev: &dev}
}

// showRemote prints the groups of a host with their counters, as its agent reports them: the same as "show"
// prints on the host, without what only the kernel knows (classes, rule hits, drift).
func (a *app) showRemote(ctx context.Context, t *remoteHost, dev string, over time.Duration, f format) error {
	read, err := t.watch(ctx, dev)
	if err != nil {
		return err
	}
	states, err := read()
	if err != nil {
		return err
	}
	if over == 0 {
		return a.print(f, states, func(w io.Writer) error { return view.WriteGroups(w, states, nil) })
	}
	select {
	case <-time.After(over):
	case <-ctx.Done():
		return ctx.Err()
	}
	later, err := read()
	if err != nil {
		return err
	}
	return a.print(f, later, func(w io.Writer) error { return view.WriteGroups(w, later, states) })
}

// showAssignmentsRemote prints the connections that were assigned through a service.
func (a *app) showAssignmentsRemote(ctx context.Context, t *remoteHost, dev string, f format) error {
	client, err := t.client()
	if err != nil {
		return err
	}
	devs, err := a.resolveInterfaces(ctx, t, client, dev)
	if err != nil {
		return err
	}
	all := []view.DeviceAssignments{}
	for _, d := range devs {
		list, err := t.connections(ctx, client, d)
		if err != nil {
			return err
		}
		all = append(all, view.DeviceAssignments{Dev: d, Assignments: list})
	}
	return a.printAssignments(all, f)
}

// interfaces returns the names of all interfaces of a host at the service.
func (t *remoteHost) interfaces(ctx context.Context, client *api.Client) ([]string, error) {
	all, err := api.ListAll(func(after *string) ([]api.Interface, *string, error) {
		page, err := api.Decode[api.InterfaceList](client.ListInterfaces(ctx, t.host, &api.ListInterfacesParams{After: after}))
		return page.Items, page.Next, err
	})
	names := []string{}
	for _, i := range all {
		names = append(names, orEmpty(i.Dev))
	}
	return names, err
}

// resolveInterfaces returns all interfaces of a host for "all", or else the interface that dev selects: by its name
// at the service, or by another name of its device.
func (a *app) resolveInterfaces(ctx context.Context, t *remoteHost, client *api.Client, dev string) ([]string, error) {
	all, err := t.interfaces(ctx, client)
	if err != nil || dev == "all" {
		return all, err
	}
	if slices.Contains(all, dev) {
		return []string{dev}, nil
	}
	names := t.names(ctx, client)
	is := names.Kernel(dev)
	for _, name := range all {
		if names.Kernel(name) == is {
			is = name
			break
		}
	}
	if is != dev {
		a.note("headgate: %s is the device %s of %s", dev, is, t.host)
	}
	return []string{is}, nil
}

// clearRemote deletes the interface of a device at the service.
func (a *app) clearRemote(ctx context.Context, t *remoteHost, dev string, f format) error {
	client, err := t.client()
	if err != nil {
		return err
	}
	devs, err := a.resolveInterfaces(ctx, t, client, dev)
	if err != nil {
		return err
	}
	list := []clearOutput{}
	for _, d := range devs {
		if _, err := api.Decode[struct{}](client.DeleteInterface(ctx, t.host, d, nil)); err != nil {
			return err
		}
		list = append(list, clearOutput{d, true})
	}
	return a.print(f, list, func(w io.Writer) error {
		for _, c := range list {
			fmt.Fprintf(w, "%s: cleared\n", c.Dev)
		}
		return nil
	})
}

// assignRemote assigns connections to a group of a host of a service. With an empty path it unassigns
// them.
func (a *app) assignRemote(c *cobra.Command, t *remoteHost, dev, path string, texts []string) error {
	list, err := a.conns(c, texts)
	if err != nil {
		return err
	}
	client, err := t.client()
	if err != nil {
		return err
	}
	devs, err := a.resolveInterfaces(c.Context(), t, client, dev)
	if err != nil {
		return err
	}
	dev = devs[0]
	var failed error
	for _, conn := range list {
		if path == "" {
			_, err = api.Decode[struct{}](client.DeleteConnection(c.Context(), t.host, dev, conn.String(), nil))
		} else {
			_, err = api.Decode[api.Connection](client.PutConnection(c.Context(), t.host, dev, conn.String(), nil, api.Connection{Group: path}))
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%v: %w", conn, err))
		}
	}
	return failed
}
