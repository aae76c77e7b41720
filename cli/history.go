package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	api "headgate.dev/headgate/api/client"
	apihost "headgate.dev/headgate/api/host"
	"headgate.dev/headgate/internal/text"
)

func historyCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "history --host HOST --dev DEV",
		Short: "List the changes of an interface of a host at a service, newest first",
		Long: `History prints the changes of an interface, the newest first. "headgate rollback --to REVISION"
restores the interface as it was after that change. The service keeps former configurations for a
week, and the list of changes for 90 days.`,
		Example: "  headgate history --host web1 --dev eth0", Args: cobra.NoArgs,
	}
	server, host, dev := interfaceFlags(c)
	limit := limitFlag(c)
	output := outputFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		client, err := a.resolveInterface(c.Context(), *server, *host, dev)
		if err != nil {
			return err
		}
		all, err := listUpTo(c, *limit, func(before *string, limit *int) (api.AuditList, error) {
			return api.Decode[api.AuditList](client.ListHistory(c.Context(), *host, *dev, &api.ListHistoryParams{Before: before, Limit: limit}))
		})
		if err == nil && len(all) == 0 {
			_, err = api.Decode[api.Interface](client.GetInterface(c.Context(), *host, *dev, nil)) // fails if the interface does not exist
		}
		if err != nil {
			return err
		}
		return a.print(*output, all, func(w io.Writer) error { return auditTable(w, all) })
	}
	return c
}

// interfaceFlags adds the flags that select an interface of a host of a service.
func interfaceFlags(c *cobra.Command) (server, host, dev *string) {
	server = serverFlag(c)
	host = c.Flags().String("host", "", "the `HOST`, by its name at the service")
	dev = c.Flags().String("dev", "", "the device, or the device pattern in the service's configuration")
	completeFlag(c, "host", completeHosts(server))
	requireFlags(c, "host", "dev")
	return server, host, dev
}

// resolveInterface returns a client of the service, and sets dev to the name or pattern under which the
// service has the device. A dev that the service's history knows stays as it is.
func (a *app) resolveInterface(ctx context.Context, server, host string, dev *string) (*api.Client, error) {
	client, err := service(server)
	if err != nil {
		return nil, err
	}
	one := 1
	if had, err := api.Decode[api.AuditList](client.ListHistory(ctx, host, *dev, &api.ListHistoryParams{Limit: &one})); err == nil && len(had.Items) > 0 {
		return client, nil
	}
	*dev, err = a.resolveRemote(ctx, apihost.Host{Name: host, Client: client}, *dev)
	return client, err
}

func limitFlag(c *cobra.Command) *int {
	return c.Flags().Int("limit", 50, fmt.Sprintf("print at most this many, up to %d", mostEntries))
}

const mostEntries = 1000

// listUpTo reads up to most changes, over several pages: a page may have fewer entries than requested
// although more exist.
func listUpTo(c *cobra.Command, most int, one func(before *string, limit *int) (api.AuditList, error)) ([]api.AuditEntry, error) {
	if most < 1 || most > mostEntries {
		return nil, usageError{fmt.Errorf("--limit %d is out of range: set 1 to %d", most, mostEntries), c.CommandPath()}
	}
	all := []api.AuditEntry{}
	for before := (*string)(nil); ; {
		left := most - len(all)
		page, err := one(before, &left)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if before = page.Next; before == nil || len(all) >= most {
			return all, nil
		}
	}
}

func auditTable(w io.Writer, all []api.AuditEntry) error {
	rows := [][]string{{"REVISION", "AT", "BY", "ROLE", "CHANGE"}}
	for _, e := range all {
		rows = append(rows, auditRow(e))
	}
	return text.Table(w, "", rows)
}

func auditRow(e api.AuditEntry) []string {
	role := ""
	if e.Role != nil {
		role = string(*e.Role)
	}
	return []string{fmt.Sprint(orNone(e.Revision)), e.At.Local().Format(time.DateTime), e.Principal, role, e.Request}
}

func rollbackCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "rollback --host HOST --dev DEV --to REVISION",
		Short: "Restore a former configuration of an interface of a host at a service",
		Long: `Rollback restores an interface as it was at a revision of "headgate history", with all its groups.
Connections that are assigned now keep their group if the restored configuration has that group.
Assignments of the former time are not restored. The rollback is validated like any other change,
and can itself be rolled back.`,
		Example: `  headgate history --host web1 --dev eth0
  headgate rollback --host web1 --dev eth0 --to 4711`,
		Args: cobra.NoArgs,
	}
	server, host, dev := interfaceFlags(c)
	to := c.Flags().Int64("to", 0, "the `REVISION`")
	dry, output := dryRunFlag(c), outputFlag(c)
	requireFlags(c, "host", "dev", "to")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *to < 1 {
			return usageError{errors.New("--to is not a revision: write a number of \"headgate history\", from 1 on"), c.CommandPath()}
		}
		client, err := a.resolveInterface(c.Context(), *server, *host, dev)
		if err != nil {
			return err
		}
		is, err := api.Decode[api.Interface](client.RollBack(c.Context(), *host, *dev, &api.RollBackParams{DryRun: dry}, api.RollBackJSONRequestBody{Revision: *to}))
		if err != nil {
			return err
		}
		return a.print(*output, is, printOutcome(*dev, "of "+*host, fmt.Sprintf("rolled back to revision %d", *to), nil, *dry))
	}
	return c
}

func auditCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "audit",
		Short: "Print the audit log of a service, newest first",
		Long:  `Audit prints the changes that were made through the API, the newest first. A tenant sees only its own changes.`,
		Example: `  headgate audit --limit 20
  headgate audit -o json | jq '.[] | select(.by == "ci")'`,
		Args: cobra.NoArgs,
	}
	server, limit, output := serverFlag(c), limitFlag(c), outputFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		client, err := service(*server)
		if err != nil {
			return err
		}
		all, err := listUpTo(c, *limit, func(before *string, limit *int) (api.AuditList, error) {
			return api.Decode[api.AuditList](client.ListAudit(c.Context(), &api.ListAuditParams{Before: before, Limit: limit}))
		})
		if err != nil {
			return err
		}
		return a.print(*output, all, func(w io.Writer) error { return auditTable(w, all) })
	}
	return c
}
