package cli

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/unit"
)

var hosts = resource[api.HostState]{
	kind: "host", columns: []string{"NAME", "AGENT", "VERSION", "ENFORCED", "DESCRIPTION"},
	row: func(h api.HostState) []string {
		agent := "-" // the service does not show it to tenants
		switch {
		case h.Revoked != nil && *h.Revoked:
			agent = "revoked"
		case h.Ahead != nil:
			agent = "ahead"
		case h.Connected != nil && *h.Connected:
			agent = "connected"
		case h.Connected != nil:
			agent = "disconnected"
		}
		return []string{orNone(h.Name), agent, orNone(h.Version), enforcedOf(h), orNone(h.Description)}
	},
	page: func(q request, after *string) ([]api.HostState, *string, error) {
		page, err := api.Decode[api.HostList](q.client.ListHosts(q.ctx, &api.ListHostsParams{After: after}))
		return page.Items, page.Next, err
	},
	name: func(h api.HostState) *string { return h.Name },
	get:  func(q request) (*http.Response, error) { return q.client.GetHost(q.ctx, q.args[0]) },
	delete: func(q request) (*http.Response, error) {
		return q.client.DeleteHost(q.ctx, q.args[0], &api.DeleteHostParams{DryRun: q.dry})
	},
	detail: func(w io.Writer, h api.HostState) error {
		return errors.Join(documentTable(w, h), deviceTable(w, h))
	},
}

// enforcedOf returns how many of a host's documents are in force, such as "2 of 3".
func enforcedOf(h api.HostState) string {
	if h.Documents == nil || h.Connected == nil || !*h.Connected {
		return "" // unknown
	}
	n := 0
	for _, d := range *h.Documents {
		if d.State == api.DocumentEnforced {
			n++
		}
	}
	return fmt.Sprintf("%d of %d", n, len(*h.Documents))
}

// documentTable prints the documents of a host, and whether they are in force.
func documentTable(w io.Writer, h api.HostState) error {
	if h.Documents == nil || len(*h.Documents) == 0 {
		return nil
	}
	rows := [][]string{{"DOCUMENT", "NAME", "STATE", ""}}
	for _, d := range *h.Documents {
		rows = append(rows, []string{string(d.Kind), d.Name, string(d.State), orNone(d.Reason)})
	}
	fmt.Fprintln(w)
	return text.Table(w, "  ", rows)
}

func hostCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "host",
		Short: "Create, list and delete hosts of a service",
		Args:  cobra.ArbitraryArgs,
		RunE:  helpOrUnknown,
	}
	c.AddCommand(
		hostSetCommand(a),
		hosts.listCommand(a, &cobra.Command{
			Use:   "list",
			Short: "List hosts, and whether their agents are connected",
			Long: `List prints the hosts of a service, and whether their agents are connected. A tenant sees only the
names of the hosts on which it has groups.`,
			Example: "  headgate host list", Args: cobra.NoArgs,
		}),
		hosts.showCommand(a, &cobra.Command{
			Use:   "show NAME",
			Short: "Show a host, its devices, and whether its documents are in force",
			Long: `Show prints a host and what its agent reports: the state of each document, the devices, and
the owner of each device: the controller, a file or a command on the host (local), or none.

A document is enforced, applying (the agent has it and has not reported it yet), waiting (the
host has no such device), overridden (a file on the host configures the device), refused (with
the reason), or disconnected: the agent enforces what it last received.`,
			Example: "  headgate host show web1", Args: cobra.ExactArgs(1),
		}),
		hosts.deleteCommand(a, &cobra.Command{
			Use: "delete NAME", Short: "Delete a host that has no interfaces", Example: "  headgate clear --dev all --server default --host web1\n  headgate host delete web1", Args: cobra.ExactArgs(1),
		}),
	)
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
	description := c.Flags().String("description", "", "a description of the host")
	revoked := c.Flags().Bool("revoked", false, "reject the host's agent; --revoked=false accepts it again")
	server := change(a, c, hosts.kind, hosts.get, func(q request, now api.HostState, tag *string) (api.Host, error) {
		next := api.Host{Description: now.Description, Revoked: now.Revoked}
		if c.Flags().Changed("description") {
			next.Description = optional(*description)
		}
		if c.Flags().Changed("revoked") {
			next.Revoked = revoked
		}
		return api.Decode[api.Host](q.client.PutHost(q.ctx, q.args[0], &api.PutHostParams{IfMatch: tag, DryRun: q.dry}, next))
	})
	c.ValidArgsFunction = firstArg(hosts.complete(server))
	return c
}

// deviceTable prints the devices that the host's agent has reported.
func deviceTable(w io.Writer, h api.HostState) error {
	if h.Devices == nil {
		return nil
	}
	rows := [][]string{{"DEVICE", "UP", "MTU", "SPEED", "OWNER", ""}}
	for _, d := range *h.Devices {
		up, mtu, speed, owner := "no", "", "", ""
		if d.Up != nil && *d.Up {
			up = "yes"
		}
		if d.Mtu != nil {
			mtu = fmt.Sprint(*d.Mtu)
		}
		if d.SpeedBps != nil {
			speed = unit.Rate(*d.SpeedBps).String()
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
		rows = append(rows, []string{d.Name, up, mtu, speed, owner, strings.Join(notes, "; ")})
	}
	fmt.Fprintln(w)
	return text.Table(w, "  ", rows)
}
