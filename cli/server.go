package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"headgate/api"
	"headgate/cli/view"
	"headgate/config"
	"headgate/group"
	"headgate/shaper"
	"headgate/unit"
)

// there is a host of a service, to which a command may be said instead of this one.
type there struct{ server, host string }

// thereFlags are --server and --host.
func thereFlags(c *cobra.Command) *there {
	t := &there{}
	c.Flags().StringVar(&t.server, "server", "", "a host of the service at this `URL`, or of a login's profile, instead of this one")
	c.Flags().StringVar(&t.host, "host", "", "the `HOST`, as the service has it")
	completeFlag(c, "host", completeHosts(&t.server))
	c.MarkFlagsRequiredTogether("server", "host")
	return t
}

// nothing refuses flags that are for this machine.
func (t *there) nothing(c *cobra.Command, flags ...string) error {
	for _, name := range flags {
		if f := c.Flag(name); f != nil && f.Changed {
			return usageError{fmt.Errorf("--%s is of this machine, and not for a host of a service: leave it away, or --server", name), c.CommandPath()}
		}
	}
	return nil
}

// asked tells whether it is to be done there.
func (t *there) asked() bool { return t.server != "" }

func (t *there) client() (*api.Client, error) { return service(t.server) }

// names are the alternative names of the host's devices, of those that carry something if the host
// itself is not for who asks, a tenant, to see. None are known while its agent is not connected.
func (t *there) names(ctx context.Context, client *api.Client) group.Names {
	if host, err := asked[api.HostState](client.GetHost(ctx, t.host)); err == nil && host.Devices != nil {
		return namesOf(*host.Devices)
	}
	none := []string{"-"} // no group is called so: the totals alone are asked for
	rates, _ := asked[api.RateList](client.GetRates(ctx, t.host, &api.GetRatesParams{Group: &none}))
	return namesIn(rates)
}

func namesOf(devices api.HostDevices) group.Names {
	out := group.Names{}
	for _, d := range devices {
		if d.Altnames != nil {
			out[d.Name] = *d.Altnames
		}
	}
	return out
}

func namesIn(rates api.RateList) group.Names {
	out := group.Names{}
	if rates.Totals != nil {
		for _, l := range *rates.Totals {
			if l.Altnames != nil {
				out[l.Dev] = *l.Altnames
			}
		}
	}
	return out
}

// policy is what a host is to have, as documents of files, and its tag.
func (t *there) policy(ctx context.Context, client *api.Client) (set config.Set, tag *string, err error) {
	p, tag, err := current[api.Policy](client.GetPolicy(ctx, t.host))
	if err == nil && p.Text != "" {
		set, err = config.Parse("service", []byte(p.Text))
	}
	return set, tag, err
}

// applyTries is how often a host is looked at anew that others change, such as tenants, between the
// look and the change.
const applyTries = 10

// applyThere has a service make a host what files say; with dry it only says what it would change.
func (a *app) applyThere(c *cobra.Command, t *there, files []string, dry bool, f format) error {
	set, err := a.load(c, files, false)
	if err == nil && len(set.Interfaces) == 0 && len(set.Collectives) == 0 {
		err = config.Mistakes{{File: strings.Join(files, " "), Message: "there is nothing in it for a host: write documents that begin with kind: Interface or kind: Collective"}}
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
		if before, tag, err = t.policy(c.Context(), client); err != nil {
			return err
		}
		// So that what is said to be changed is what is.
		after, err = t.put(c.Context(), client, set, tag, dry)
		if changed := (changedMeanwhile{}); !errors.As(err, &changed) {
			break
		} else if try == applyTries {
			return fmt.Errorf("%s is changed by others all the time, and nothing was done: apply it again: %w", t.host, err)
		}
	}
	if err != nil {
		return err
	}
	a.warnWhere(set, false)
	if err := a.warnThere(c.Context(), t, client, set); err != nil {
		a.note("headgate: warning: what the agent of %s says against it is not known: %v", t.host, err)
	}
	steps := append(stepsFrom(before, after), setSteps(before, after)...)
	return a.print(f, steps, func(w io.Writer) error { printSteps(w, steps); return nil })
}

// stepsFrom says what is another in a set of interfaces than in the one before.
func stepsFrom(before, after config.Set) []step {
	steps := []step{}
	trees := func(set config.Set, dev string) (out [2]*group.Tree) {
		for _, i := range set.Interfaces {
			if i.Dev == dev {
				return [2]*group.Tree{i.OutTree, i.InTree}
			}
		}
		return out
	}
	for _, i := range after.Interfaces {
		was, is := trees(before, i.Dev), trees(after, i.Dev)
		s := step{Dev: i.Dev, Engine: i.Engine, Changes: []shaper.Change{}}
		for n, direction := range []string{"out", "in"} {
			s.Changes = append(s.Changes, changes(direction, was[n], is[n])...)
		}
		steps = append(steps, s)
	}
	return steps
}

// changes from one tree to another; nil has no groups.
func changes(direction string, was, is *group.Tree) (out []shaper.Change) {
	nodes := func(t *group.Tree) []group.Node {
		if t == nil {
			return nil
		}
		return t.Nodes
	}
	detail := func(n group.Node) string { return fmt.Sprintf("guarantee %v, ceiling %v", n.Guarantee, n.Ceiling) }
	same := func(path string) func(group.Node) bool {
		return func(n group.Node) bool { return n.Path == path }
	}
	for _, n := range nodes(was) {
		if !slices.ContainsFunc(nodes(is), same(n.Path)) {
			out = append(out, shaper.Change{Verb: "remove", Object: direction + " group " + n.Path})
		}
	}
	for _, n := range nodes(is) {
		i := slices.IndexFunc(nodes(was), same(n.Path))
		switch {
		case i < 0:
			out = append(out, shaper.Change{Verb: "add", Object: direction + " group " + n.Path, Detail: detail(n)})
		case detail(was.Nodes[i]) != detail(n) || was.Nodes[i].Priority != n.Priority:
			out = append(out, shaper.Change{Verb: "change", Object: direction + " group " + n.Path, Detail: detail(n)})
		}
	}
	if len(out) == 0 && !group.EqualTrees(was, is) {
		out = append(out, shaper.Change{Verb: "change", Object: direction + " limit and rules"})
	}
	return out
}

// ratesOf asks for the rates of a device, by any of its names, or of all.
func ratesOf(dev string) *api.GetRatesParams {
	if dev == "all" {
		return nil
	}
	return &api.GetRatesParams{Dev: &dev}
}

// groupLine is a group of a host of a service, with what it carries.
type groupLine struct {
	Dev       string    `json:"dev"`
	Direction string    `json:"direction"`
	Group     string    `json:"group"`
	Guarantee unit.Rate `json:"guarantee"`
	Delivered unit.Rate `json:"delivered"`
	Backlog   int64     `json:"backlog_bytes"`
}

// showThere prints what the groups of a host carry, as its agent tells.
func (a *app) showThere(ctx context.Context, t *there, dev string, f format) error {
	client, err := t.client()
	if err != nil {
		return err
	}
	got, err := asked[api.RateList](client.GetRates(ctx, t.host, ratesOf(dev)))
	if err != nil {
		return err
	}
	lines := []groupLine{}
	for _, g := range got.Items {
		l := groupLine{Dev: g.Dev, Direction: g.Direction, Group: g.Group, Backlog: orNone(g.Backlog)}
		l.Delivered, _ = unit.ParseRate(g.Delivered)
		if g.Guaranteed != nil {
			l.Guarantee, _ = unit.ParseRate(*g.Guaranteed)
		}
		lines = append(lines, l)
	}
	return a.print(f, lines, func(to io.Writer) error {
		w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "DEV\tGROUP\tGUARANTEE\tRATE\tBACKLOG")
		for _, l := range lines {
			fmt.Fprintf(w, "%s\t%s %s\t%s\t%s\t%s\n", l.Dev, l.Direction, l.Group, view.Rate(float64(l.Guarantee)), view.Rate(float64(l.Delivered)), view.Bytes(uint64(l.Backlog)))
		}
		return w.Flush()
	})
}

// showAssignmentsThere prints the connections that were put in groups through a service.
func (a *app) showAssignmentsThere(ctx context.Context, t *there, dev string, f format) error {
	client, err := t.client()
	if err != nil {
		return err
	}
	devs, err := a.meant(ctx, t, client, dev)
	if err != nil {
		return err
	}
	all := []devAssignments{}
	for _, d := range devs {
		list, err := t.connections(ctx, client, d)
		if err != nil {
			return err
		}
		all = append(all, devAssignments{d, list})
	}
	return a.printAssignments(all, f)
}

// interfaces are the names of all of a host that are divided.
func (t *there) interfaces(ctx context.Context, client *api.Client) ([]string, error) {
	all, err := every(func(after *string) ([]api.Interface, *string, error) {
		page, err := asked[api.InterfaceList](client.ListInterfaces(ctx, t.host, &api.ListInterfacesParams{After: after}))
		return page.Items, page.Next, err
	})
	names := []string{}
	for _, i := range all {
		names = append(names, orEmpty(i.Dev))
	}
	return names, err
}

// meant are all interfaces of a host, or the one that somebody names: by the name that the service has
// for it, or by another of its device.
func (a *app) meant(ctx context.Context, t *there, client *api.Client, dev string) ([]string, error) {
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

// clearThere takes away all that a service wants of a device.
func (a *app) clearThere(ctx context.Context, t *there, dev string, f format) error {
	client, err := t.client()
	if err != nil {
		return err
	}
	devs, err := a.meant(ctx, t, client, dev)
	if err != nil {
		return err
	}
	list := []cleared{}
	for _, d := range devs {
		if _, err := asked[struct{}](client.DeleteInterface(ctx, t.host, d, nil)); err != nil {
			return err
		}
		list = append(list, cleared{d, true})
	}
	return a.print(f, list, func(w io.Writer) error {
		for _, c := range list {
			fmt.Fprintf(w, "%s: cleared\n", c.Dev)
		}
		return nil
	})
}

// assignThere puts connections in a group of a host of a service, or, with no group, gives them
// back to the rules.
func (a *app) assignThere(c *cobra.Command, t *there, dev, path string, texts []string) error {
	list, err := a.conns(c, texts)
	if err != nil {
		return err
	}
	client, err := t.client()
	if err != nil {
		return err
	}
	devs, err := a.meant(c.Context(), t, client, dev)
	if err != nil {
		return err
	}
	dev = devs[0]
	var failed error
	for _, conn := range list {
		if path == "" {
			_, err = asked[struct{}](client.DeleteConnection(c.Context(), t.host, dev, conn.String(), nil))
		} else {
			_, err = asked[api.Connection](client.PutConnection(c.Context(), t.host, dev, conn.String(), nil, api.Connection{Group: path}))
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%v: %w", conn, err))
		}
	}
	return failed
}
