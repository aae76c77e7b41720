package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"headgate/api"
)

func historyCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "history --host HOST --dev DEV",
		Short: "Say who changed an interface of a service's host, newest first",
		Long: `History prints the changes of an interface, the newest first. "headgate rollback --to" with a
revision makes the interface what it was after that change. What was is remembered for a week,
who changed it for 90 days.`,
		Example: "  headgate history --host web1 --dev eth0", Args: cobra.NoArgs,
	}
	server, host, dev := interfaceFlags(c)
	limit := limitFlag(c)
	output := outputFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		client, err := a.interfaceAt(c.Context(), *server, *host, dev)
		if err != nil {
			return err
		}
		all, err := upTo(*limit, func(before *string, limit *int) (api.AuditList, error) {
			return asked[api.AuditList](client.ListHistory(c.Context(), *host, *dev, &api.ListHistoryParams{Before: before, Limit: limit}))
		})
		if err == nil && len(all) == 0 {
			_, err = asked[api.Interface](client.GetInterface(c.Context(), *host, *dev, nil)) // is there one at all?
		}
		if err != nil {
			return err
		}
		return a.print(*output, all, func(w io.Writer) error { return auditTable(w, all) })
	}
	return c
}

// interfaceFlags say which interface of which host of which service is meant.
func interfaceFlags(c *cobra.Command) (server, host, dev *string) {
	server = serverFlag(c)
	host = c.Flags().String("host", "", "the `HOST`, as the service has it")
	dev = c.Flags().String("dev", "", "the device, or the pattern that the service has")
	completeFlag(c, "host", completeHosts(server))
	required(c, "host", "dev")
	return server, host, dev
}

// interfaceAt has dev be what the service has for a device that somebody names, or had by that name.
func (a *app) interfaceAt(ctx context.Context, server, host string, dev *string) (*api.Client, error) {
	client, err := service(server)
	if err != nil {
		return nil, err
	}
	one := 1
	if had, err := asked[api.AuditList](client.ListHistory(ctx, host, *dev, &api.ListHistoryParams{Limit: &one})); err == nil && len(had.Items) > 0 {
		return client, nil
	}
	devs, err := a.meant(ctx, &there{server, host}, client, *dev)
	if err == nil {
		*dev = devs[0]
	}
	return client, err
}

func limitFlag(c *cobra.Command) *int {
	return c.Flags().Int("limit", 50, "print no more than this, up to 1000")
}

// upTo reads so many changes: an answer may have fewer, and there be more.
func upTo(most int, one func(before *string, limit *int) (api.AuditList, error)) ([]api.AuditEntry, error) {
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
	rows := [][]string{{"REVISION", "AT", "BY", "ROLE", "WHAT"}}
	for _, e := range all {
		rows = append(rows, auditRow(e))
	}
	return table(w, "", rows)
}

func auditRow(e api.AuditEntry) []string {
	role := ""
	if e.Role != nil {
		role = string(*e.Role)
	}
	return []string{fmt.Sprint(orNone(e.Revision)), e.At.Local().Format(time.DateTime), e.By, role, e.What}
}

func rollbackCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "rollback --host HOST --dev DEV --to REVISION",
		Short: "Make an interface of a service's host what it was",
		Long: `Rollback makes an interface what it was at a revision of "headgate history", with all groups on
it. Connections that are assigned now stay where they are, if their group is there then; those of
that time do not come back. It is checked as any change is, and is itself one that can be rolled back.`,
		Example: `  headgate history --host web1 --dev eth0
  headgate rollback --host web1 --dev eth0 --to 4711`,
		Args: cobra.NoArgs,
	}
	server, host, dev := interfaceFlags(c)
	to := c.Flags().Int64("to", 0, "the `REVISION`")
	dry, output := dryRunFlag(c), outputFlag(c)
	required(c, "host", "dev", "to")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *to < 1 {
			return usageError{errors.New("--to is a revision of \"headgate history\": write a number from 1 on"), c.CommandPath()}
		}
		client, err := a.interfaceAt(c.Context(), *server, *host, dev)
		if err != nil {
			return err
		}
		is, err := asked[api.Interface](client.RollBack(c.Context(), *host, *dev, &api.RollBackParams{DryRun: dry}, api.RollBackJSONRequestBody{Revision: *to}))
		if err != nil {
			return err
		}
		return a.print(*output, is, outcome(*dev, "of "+*host, fmt.Sprintf("what it was at revision %d", *to), nil, *dry))
	}
	return c
}

func auditCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "audit",
		Short: "Say who changed what at a service, newest first",
		Long:  `Audit prints the changes that were made through the API, the newest first. A tenant is told of its own.`,
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
		all, err := upTo(*limit, func(before *string, limit *int) (api.AuditList, error) {
			return asked[api.AuditList](client.ListAudit(c.Context(), &api.ListAuditParams{Before: before, Limit: limit}))
		})
		if err != nil {
			return err
		}
		return a.print(*output, all, func(w io.Writer) error { return auditTable(w, all) })
	}
	return c
}
