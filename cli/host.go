package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/internal/text"
)

func hostCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "host",
		Short: "Create, list and delete hosts of a service",
		Args:  cobra.ArbitraryArgs,
		RunE:  helpOrUnknown,
	}
	c.AddCommand(hostSetCommand(a), hostListCommand(a), hostShowCommand(a), hostDeleteCommand(a))
	return c
}

func hostSetCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "set NAME",
		Aliases: []string{"create"},
		Short:   "Create a host, or change one",
		Long: `Set creates a host, which an agent can then join as, or changes the settings of a host that are
given as flags. With --revoked the controller rejects the host's agent. The agent keeps enforcing
the configuration that it has.`,
		Example: `  headgate host create web1 --description "rack 4"
  headgate token create web1 --role agent --host web1 > join.token
  headgate host set web1 --revoked`,
		Args: cobra.ExactArgs(1),
	}
	server, dry, output := serverFlag(c), dryRunFlag(c), outputFlag(c)
	description := c.Flags().String("description", "", "a description of the host")
	revoked := c.Flags().Bool("revoked", false, "reject the host's agent; --revoked=false accepts it again")
	c.ValidArgsFunction = firstArg(completeHosts(server))
	c.RunE = func(c *cobra.Command, args []string) error {
		client, err := service(*server)
		if err != nil {
			return err
		}
		now, tag, err := api.DecodeWithETag[api.HostState](client.GetHost(c.Context(), args[0]))
		if err != nil {
			return err
		}
		next := api.Host{Description: now.Description, Revoked: now.Revoked}
		if c.Flags().Changed("description") {
			next.Description = optional(*description)
		}
		if c.Flags().Changed("revoked") {
			next.Revoked = revoked
		}
		made, err := api.Decode[api.Host](client.PutHost(c.Context(), args[0], &api.PutHostParams{IfMatch: tag, DryRun: dry}, next))
		if err != nil {
			return err
		}
		return a.print(*output, made, printOutcome("host", args[0], "created", tag, *dry))
	}
	return c
}

func hostListCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "list",
		Short: "List hosts, and whether their agents are connected",
		Long: `List prints the hosts of a service, and whether their agents are connected. A tenant sees only the
names of the hosts on which it has groups.`,
		Example: "  headgate host list", Args: cobra.NoArgs,
	}
	server, output := serverFlag(c), outputFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		client, err := service(*server)
		if err != nil {
			return err
		}
		all, err := api.ListAll(func(after *string) ([]api.HostState, *string, error) {
			page, err := api.Decode[api.HostList](client.ListHosts(c.Context(), &api.ListHostsParams{After: after}))
			return page.Items, page.Next, err
		})
		if err != nil {
			return err
		}
		return a.print(*output, all, func(w io.Writer) error { return hostTable(w, all) })
	}
	return c
}

func hostTable(w io.Writer, all []api.HostState) error {
	rows := [][]string{{"NAME", "AGENT", "VERSION", "ENFORCED", "DESCRIPTION"}}
	for _, h := range all {
		agent := "-" // the service does not show it to tenants
		switch {
		case h.Revoked != nil && *h.Revoked:
			agent = "revoked"
		case h.Connected != nil && *h.Connected:
			agent = "connected"
		case h.Connected != nil:
			agent = "disconnected"
		}
		rows = append(rows, []string{orEmpty(h.Name), agent, orEmpty(h.Version), orEmpty(h.Applied), orEmpty(h.Description)})
	}
	return text.Table(w, "", rows)
}

func hostShowCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a host, its devices, and why a device is not in its desired state",
		Long: `Show prints a host and what its agent reports: the epoch and revision that are in force, the
devices, and the owner of each device: the controller, a file or a command on the host (local), or
none.`,
		Example: "  headgate host show web1", Args: cobra.ExactArgs(1),
	}
	server, output := serverFlag(c), outputFlag(c)
	c.ValidArgsFunction = firstArg(completeHosts(server))
	c.RunE = func(c *cobra.Command, args []string) error {
		client, err := service(*server)
		if err != nil {
			return err
		}
		h, err := api.Decode[api.HostState](client.GetHost(c.Context(), args[0]))
		if err != nil {
			return err
		}
		return a.print(*output, h, func(w io.Writer) error {
			if err := hostTable(w, []api.HostState{h}); err != nil || h.Devices == nil {
				return err
			}
			fmt.Fprintln(w)
			return deviceTable(w, *h.Devices)
		})
	}
	return c
}

func deviceTable(w io.Writer, devices api.HostDevices) error {
	rows := [][]string{{"DEVICE", "UP", "MTU", "SPEED", "OWNER", ""}}
	for _, d := range devices {
		up, mtu, owner := "no", "", ""
		if d.Up != nil && *d.Up {
			up = "yes"
		}
		if d.Mtu != nil {
			mtu = fmt.Sprint(*d.Mtu)
		}
		if d.Owner != nil {
			owner = string(*d.Owner)
		}
		notes := []string{}
		if d.Error != nil {
			notes = append(notes, *d.Error)
		}
		if d.Foreign != nil {
			notes = append(notes, *d.Foreign...)
		}
		rows = append(rows, []string{d.Name, up, mtu, orEmpty(d.Speed), owner, strings.Join(notes, "; ")})
	}
	return text.Table(w, "  ", rows)
}

func hostDeleteCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "delete NAME", Short: "Delete a host that has no interfaces", Example: "  headgate clear --dev all --server default --host web1\n  headgate host delete web1", Args: cobra.ExactArgs(1),
	}
	server, dry := serverFlag(c), dryRunFlag(c)
	c.ValidArgsFunction = firstArg(completeHosts(server))
	c.RunE = func(c *cobra.Command, args []string) error {
		client, err := service(*server)
		if err != nil {
			return err
		}
		if _, err := api.Decode[struct{}](client.DeleteHost(c.Context(), args[0], &api.DeleteHostParams{DryRun: dry})); err != nil {
			return err
		}
		return printOutcome("host", args[0], "deleted", nil, *dry)(a.out)
	}
	return c
}
