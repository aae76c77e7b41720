package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	api "headgate.dev/headgate/api/client"
	apihost "headgate.dev/headgate/api/host"
)

func historyCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "history",
		Short: "List the changes of this machine, or of an interface of a host at a service, newest first",
		Long: `History prints what apply, clear and undo changed on this machine, the newest first; "headgate undo"
returns to the state before a change. The last 20 are kept.

With --host it prints the changes of an interface, the newest first, with the old and new values of the fields
that each has changed. "headgate rollback --to REVISION"
restores the interface as it was after that change. The service keeps former configurations for a
week, and the list of changes for 90 days.`,
		Example: `  headgate history
  headgate history --host web1 --dev eth0`,
		Args: cobra.NoArgs,
	}
	limit := limitFlag(c)
	host, dev := optionalInterfaceFlags(c)
	server := query(a, c, func(q request) ([]api.AuditEntry, error) {
		if err := a.resolveInterface(q, *host, dev); err != nil {
			return nil, err
		}
		all, err := listUpTo(c, *limit, func(before *string, limit *int) (api.AuditList, error) {
			return api.Decode[api.AuditList](q.client.ListHistory(q.ctx, *host, *dev, &api.ListHistoryParams{Before: before, Limit: limit}))
		})
		if err == nil && len(all) == 0 {
			_, err = api.Decode[api.Interface](q.client.GetInterface(q.ctx, *host, *dev, nil)) // fails if the interface does not exist
		}
		return all, err
	}, changes.table)
	completeFlag(c, "host", hosts.complete(server))
	remote := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		switch {
		case *host != "" && *dev == "":
			return usageError{errors.New("--dev is missing: the history of a host at a service is that of one device"), c.CommandPath()}
		case *host != "":
			return remote(c, args)
		case *server != "":
			return usageError{errors.New("--host is missing: with --server, history is that of a device of a host"), c.CommandPath()}
		}
		if err := checkLimit(c, *limit); err != nil {
			return err
		}
		if *dev != "" {
			*dev = a.dev(*dev)
		}
		all, err := a.localHistory(*dev)
		if err != nil {
			return err
		}
		all = all[:min(len(all), *limit)]
		return a.print(format(c.Flag("output").Value.String()), all, func(w io.Writer) error { return localChanges.table(w, all) })
	}
	return c
}

func checkLimit(c *cobra.Command, limit int) error {
	if limit >= 1 && limit <= maxEntries {
		return nil
	}
	return usageError{fmt.Errorf("--limit %d is out of range: set 1 to %d", limit, maxEntries), c.CommandPath()}
}

// interfaceFlags adds the flags that select an interface of a host of a service.
func interfaceFlags(c *cobra.Command) (host, dev *string) {
	host, dev = optionalInterfaceFlags(c)
	requireFlags(c, "host", "dev")
	return host, dev
}

func optionalInterfaceFlags(c *cobra.Command) (host, dev *string) {
	return c.Flags().String("host", "", "the `HOST`, by its name at the service"),
		c.Flags().String("dev", "", "the device, or the device pattern in the service's configuration")
}

// resolveInterface sets dev to the name or pattern under which the service has the device. A dev that the
// service's history knows stays as it is.
func (a *app) resolveInterface(q request, host string, dev *string) (err error) {
	one := 1
	if had, err := api.Decode[api.AuditList](q.client.ListHistory(q.ctx, host, *dev, &api.ListHistoryParams{Limit: &one})); err == nil && len(had.Items) > 0 {
		return nil
	}
	*dev, err = a.resolveRemote(q.ctx, apihost.Host{Name: host, Client: q.client}, *dev)
	return err
}

func limitFlag(c *cobra.Command) *int {
	return c.Flags().Int("limit", 50, fmt.Sprintf("print at most this many, up to %d", maxEntries))
}

const maxEntries = 1000

// listUpTo reads up to maxChanges changes.
func listUpTo(c *cobra.Command, maxChanges int, one func(before *string, limit *int) (api.AuditList, error)) ([]api.AuditEntry, error) {
	if err := checkLimit(c, maxChanges); err != nil {
		return nil, err
	}
	return api.ListUpTo(maxChanges, func(before *string, limit *int) ([]api.AuditEntry, *string, error) {
		page, err := one(before, limit)
		return page.Items, page.Next, err
	})
}

// changes are entries of the audit log.
var changes = resource[api.AuditEntry]{
	columns: []string{"REVISION", "AT", "BY", "ROLE", "CHANGE", "VALUES"},
	row: func(e api.AuditEntry) []string {
		role := ""
		if e.Role != nil {
			role = string(*e.Role)
		}
		return []string{fmt.Sprint(orNone(e.Revision)), e.At.Local().Format(time.DateTime), e.Principal, role, e.Request, valuesOf(e)}
	},
}

// valuesOf returns the fields that an entry has changed, the first ones, as a cell of a table.
func valuesOf(e api.AuditEntry) string {
	const shown = 3
	var all []string
	more := orNone(e.MoreDifferences)
	for i, d := range orNone(e.Differences) {
		if i == shown {
			more += len(*e.Differences) - shown
			break
		}
		was, is := cmp.Or(orNone(d.Before), "-"), cmp.Or(orNone(d.After), "-")
		all = append(all, fmt.Sprintf("%s: %s -> %s", d.Field, strings.Trim(was, `"`), strings.Trim(is, `"`)))
	}
	if more > 0 {
		all = append(all, fmt.Sprintf("%d more (-o json)", more))
	}
	return strings.Join(all, "; ")
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
	host, dev := interfaceFlags(c)
	to := c.Flags().Int64("to", 0, "the `REVISION`")
	server, dry, output := serverFlag(c), dryRunFlag(c), outputFlag(c)
	completeFlag(c, "host", hosts.complete(server))
	requireFlags(c, "host", "dev", "to")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *to < 1 {
			return usageError{errors.New("--to is not a revision: write a number of \"headgate history\", from 1 on"), c.CommandPath()}
		}
		client, err := service(*server)
		if err != nil {
			return err
		}
		q := request{ctx: c.Context(), client: client, dry: dry}
		if err := a.resolveInterface(q, *host, dev); err != nil {
			return err
		}
		is, err := api.Decode[api.Interface](client.RollBack(q.ctx, *host, *dev, &api.RollBackParams{DryRun: dry}, api.RollBackJSONRequestBody{Revision: *to}))
		if err != nil {
			return err
		}
		return a.print(*output, is, outcome(q, *dev+" of "+*host, fmt.Sprintf("rolled back to revision %d", *to)))
	}
	return c
}

func auditCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "audit",
		Short: "Print the audit log of a service, newest first",
		Long: `Audit prints the changes that were made through the API, the newest first, with the old and new values of
the fields that each has changed: the first three, and all of the first twelve with -o json. A tenant sees only its own changes.`,
		Example: `  headgate audit --limit 20
  headgate audit -o json | jq '.[] | select(.principal == "ci")'`,
		Args: cobra.NoArgs,
	}
	limit := limitFlag(c)
	query(a, c, func(q request) ([]api.AuditEntry, error) {
		return listUpTo(c, *limit, func(before *string, limit *int) (api.AuditList, error) {
			return api.Decode[api.AuditList](q.client.ListAudit(q.ctx, &api.ListAuditParams{Before: before, Limit: limit}))
		})
	}, changes.table)
	return c
}
