package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	api "headgate.dev/headgate/api/client"
	apihost "headgate.dev/headgate/api/host"
	"headgate.dev/headgate/config"
	"headgate.dev/headgate/config/diff"
	"headgate.dev/headgate/rollout"
	"headgate.dev/headgate/view"
)

// remoteHost selects a host of a service, for commands that can act on it instead of this machine.
type remoteHost struct{ server, host string }

// serverFlags adds the flags --server and --host.
func serverFlags(c *cobra.Command) *remoteHost {
	t := &remoteHost{}
	c.Flags().StringVar(&t.server, "server", "", "act on a host of the service at this `URL`, or of this login profile, instead of this machine")
	c.Flags().StringVar(&t.host, "host", "", "the `HOST`, by its name at the service")
	completeFlag(c, "host", hosts.complete(&t.server))
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

// open returns the host, with a client of its service.
func (t *remoteHost) open() (apihost.Host, error) {
	client, err := service(t.server)
	return apihost.Host{Name: t.host, Client: client}, err
}

// resolveRemote returns the interface of a host that dev selects, and notes if it has another name.
func (a *app) resolveRemote(ctx context.Context, h apihost.Host, dev string) (string, error) {
	is, err := h.Resolve(ctx, dev)
	if err == nil && is != dev {
		a.note("headgate: %s is the device %s of %s", dev, is, h.Name)
	}
	return is, err
}

// resolveRemotes is resolveRemote for commands that take "all" for all interfaces of a host.
func (a *app) resolveRemotes(ctx context.Context, h apihost.Host, dev string) ([]string, error) {
	if dev == "all" {
		return h.Interfaces(ctx)
	}
	dev, err := a.resolveRemote(ctx, h, dev)
	return []string{dev}, err
}

// applyRemote sets the desired state of a host of a service from files. With dry it only prints the
// changes. Otherwise it waits until the host enforces them, if wait is not 0.
func (a *app) applyRemote(c *cobra.Command, t *remoteHost, files []string, dry bool, wait time.Duration, f format) error {
	set, err := a.load(c, files, false)
	if err == nil {
		err = reservationsNot(set, c.Name()+" does not create reservations")
	}
	if err == nil && len(set.Interfaces) == 0 && len(set.Collectives) == 0 {
		err = config.Errors{{File: strings.Join(files, " "), Message: "no document for a host: write documents with kind: Interface or kind: Collective" + readers(set)}}
	}
	if err != nil {
		return err
	}
	h, err := t.open()
	if err != nil {
		return err
	}
	var states []api.DocumentState
	if wait > 0 && !dry {
		if states, err = h.Documents(c.Context()); err != nil {
			return err
		}
	}
	before, after, err := h.Apply(c.Context(), set, dry)
	if err != nil {
		return err
	}
	a.warnPlacement(set, false)
	if err := a.warnRemote(c.Context(), h, set); err != nil {
		a.note("headgate: warning: cannot check the configuration with the agent of %s: %v", h.Name, err)
	}
	changes := diff.Compare(before, after)
	err = a.print(f, changes, func(w io.Writer) error { return diff.Write(w, changes) })
	if err == nil && wait > 0 && !dry {
		err = awaitEnforced(c.Context(), h, set, states, wait)
	}
	return err
}

// awaitEnforced returns an error with the documents that the host does not enforce in time.
func awaitEnforced(ctx context.Context, h apihost.Host, set config.Set, before []api.DocumentState, wait time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	left, err := h.AwaitEnforced(waiting, set, before)
	if err != nil {
		return fmt.Errorf("the configuration is stored, but its state cannot be read: %w", err)
	}
	var each []string
	for _, d := range left {
		text := fmt.Sprintf("%s is %s", d.Name, d.State)
		if d.Reason != nil {
			text += ": " + *d.Reason
		}
		each = append(each, text)
	}
	if len(each) == 0 {
		return nil
	}
	return fmt.Errorf("the configuration is stored, and not in force on %s after %v: %s", h.Name, wait, strings.Join(each, "; "))
}

// showRemote prints the groups of a host with their counters, as its agent reports them: the same as "show"
// prints on the host, without what only the kernel knows (classes, rule hits, drift).
func (a *app) showRemote(ctx context.Context, t *remoteHost, dev string, over time.Duration, f format) error {
	h, err := t.open()
	if err != nil {
		return err
	}
	read := h.Watch(ctx, dev)
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
	h, err := t.open()
	if err != nil {
		return err
	}
	devs, err := a.resolveRemotes(ctx, h, dev)
	if err != nil {
		return err
	}
	all := []view.DeviceAssignments{}
	for _, d := range devs {
		list, err := h.Connections(ctx, d)
		if err != nil {
			return err
		}
		all = append(all, view.DeviceAssignments{Dev: d, Assignments: list})
	}
	return a.printAssignments(all, f)
}

// clearRemote deletes the interface of a device at the service.
func (a *app) clearRemote(ctx context.Context, t *remoteHost, dev string, f format) error {
	h, err := t.open()
	if err != nil {
		return err
	}
	devs, err := a.resolveRemotes(ctx, h, dev)
	if err != nil {
		return err
	}
	list := []rollout.Cleared{}
	for _, d := range devs {
		if _, err := api.Decode[struct{}](h.Client.DeleteInterface(ctx, h.Name, d, nil)); err != nil {
			return err
		}
		list = append(list, rollout.Cleared{Dev: d, Cleared: true})
	}
	return a.print(f, list, func(w io.Writer) error {
		for _, c := range list {
			fmt.Fprintln(w, c)
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
	h, err := t.open()
	if err != nil {
		return err
	}
	if dev, err = a.resolveRemote(c.Context(), h, dev); err != nil {
		return err
	}
	return h.Assign(c.Context(), dev, path, list)
}

// warnRemote warns of conflicts between a configuration and the devices that a host's agent reported.
func (a *app) warnRemote(ctx context.Context, h apihost.Host, set config.Set) error {
	c, err := h.Conflicts(ctx, set)
	if err != nil {
		return err
	}
	for _, line := range conflictWarnings(h.Name, c) {
		a.note("%s", line)
	}
	return nil
}

// conflictWarnings formats conflicts as one warning per line.
func conflictWarnings(host string, c apihost.Conflicts) (lines []string) {
	warn := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if c.Disconnected {
		warn("headgate: warning: agent of %s is disconnected: cannot check the devices", host)
	}
	for _, m := range c.Duplicate {
		warn("%s:%d: %s: warning: on %s %s", m.File, m.Line, m.Key, host, m.Message)
	}
	for _, dev := range c.Missing {
		warn("headgate: warning: %s: no such device on host %s", dev, host)
	}
	for _, w := range c.Speeds {
		warn("%v", w)
	}
	for _, dev := range c.Local {
		warn("headgate: warning: %s: configured locally on host %s, by a file or by hand, which takes precedence", dev, host)
	}
	return lines
}

// checkRemote has the controller validate a configuration for a host, and warns of conflicts with the
// host's reported state.
func (a *app) checkRemote(ctx context.Context, t *remoteHost, set config.Set) error {
	h, err := t.open()
	if err != nil {
		return err
	}
	if _, err := h.Put(ctx, set, nil, true); err != nil {
		return err
	}
	return a.warnRemote(ctx, h, set)
}
