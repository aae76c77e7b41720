package cli

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/unit/rounded"
)

func reportCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "report [--since TIME | --reservations]",
		Short: "Report the usage of groups of a service, and unmet guarantees",
		Long: `Report totals the usage records of agents, which have one record per minute and keep them for a
week: the bytes of each group that were offered, delivered, guaranteed, borrowed and lent, drops and
marks, and the seconds in which the group had a backlog and its guarantee was unmet. Report names
hosts whose agents do not respond. A tenant sees only its own groups.

With --reservations it prints what each direction of a reservation has used, lent and lacked, and names those
that in at least an hour have never offered half of what they hold. These totals begin with the
reservation, or later with the term of the controller that leads, and are kept for an hour after the end.`,
		Example: `  headgate report --tenant shop --since 24h
  headgate report --since 7d -o csv
  headgate report --reservations`,
		Args: cobra.NoArgs,
	}
	server := serverFlag(c)
	tenant := c.Flags().String("tenant", "", "only this `TENANT`'s groups")
	host := c.Flags().String("host", "", "only groups of this `HOST`")
	since := c.Flags().String("since", "24h", "start: a duration before now, or a time such as 2026-05-01T00:00:00Z")
	until := c.Flags().String("until", "0s", "end: a duration before now, or a time")
	reserved := c.Flags().Bool("reservations", false, "report reservations instead of groups")
	c.MarkFlagsMutuallyExclusive("reservations", "host")
	c.MarkFlagsMutuallyExclusive("reservations", "since")
	c.MarkFlagsMutuallyExclusive("reservations", "until")
	output := "table"
	c.Flags().VarP(enumFlag{&output, []string{"table", "csv", "json"}}, "output", "o", "print as")
	completeFlag(c, "output", oneOf("table", "csv", "json"))
	c.RunE = func(c *cobra.Command, _ []string) error {
		now := time.Now()
		from, err := parseTime(*since, now)
		if err != nil {
			return usageError{fmt.Errorf("--since: %w", err), c.CommandPath()}
		}
		to, err := parseTime(*until, now)
		if err != nil {
			return usageError{fmt.Errorf("--until: %w", err), c.CommandPath()}
		}
		client, err := service(*server)
		if err != nil {
			return err
		}
		if *reserved {
			var owner *string
			if *tenant != "" {
				owner = tenant
			}
			all, err := request{ctx: c.Context(), client: client}.usage(owner, nil)
			if err != nil {
				return err
			}
			return a.reportReservations(all, output)
		}
		p := &api.GetUsageParams{Since: from, Until: &to}
		if *tenant != "" {
			p.Tenant = tenant
		}
		if *host != "" {
			p.Host = host
		}
		got, err := api.Decode[api.UsageList](client.GetUsage(c.Context(), p))
		if err != nil {
			return err
		}
		if got.Missing != nil && len(*got.Missing) > 0 {
			a.note("no response from: %s", strings.Join(*got.Missing, ", "))
		}
		switch output {
		case "json":
			return a.print("json", got, nil)
		case "csv":
			return usageCSV(a.out, got.Items)
		}
		return usageTable(a.out, got.Items)
	}
	return c
}

// parseTime parses a duration before now, or a time.
func parseTime(text string, now time.Time) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 {
			return now.Add(-time.Duration(n) * 24 * time.Hour), nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return time.Time{}, fmt.Errorf("%q is not a duration or time: write for example 24h, 7d or 2026-05-01T00:00:00Z", text)
	}
	return now.Add(-d), nil
}

func usageCSV(to io.Writer, rows []api.Usage) error {
	w := csv.NewWriter(to)
	w.Write([]string{"host", "dev", "direction", "group", "tenant", "seconds", "offered_bytes", "delivered_bytes", "guaranteed_bytes", "borrowed_bytes", "lent_bytes", "drops", "marks", "unmet_seconds"})
	for _, u := range rows {
		row := []string{u.Host, u.Dev, u.Direction, u.Group, orNone(u.Tenant), fmt.Sprint(u.Seconds)}
		for _, v := range []*int64{u.OfferedBytes, u.DeliveredBytes, u.GuaranteedBytes, u.BorrowedBytes, u.LentBytes, u.Drops, u.Marks, u.UnmetSeconds} {
			row = append(row, fmt.Sprint(orNone(v)))
		}
		w.Write(row)
	}
	w.Flush()
	return w.Error()
}

func usageTable(to io.Writer, rows []api.Usage) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "HOST\tDEV\tGROUP\tTENANT\tSECONDS\tOFFERED\tDELIVERED\tGUARANTEED\tBORROWED\tLENT\tDROPS\tMARKS\tUNMET")
	for _, u := range rows {
		tenant := orNone(u.Tenant)
		if tenant == "" {
			tenant = "-"
		}
		size := func(v *int64) string { return rounded.Bytes(uint64(orNone(v))) }
		fmt.Fprintf(w, "%s\t%s\t%s/%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d s\n", u.Host, u.Dev, u.Direction, u.Group, tenant, u.Seconds,
			size(u.OfferedBytes), size(u.DeliveredBytes), size(u.GuaranteedBytes), size(u.BorrowedBytes), size(u.LentBytes), orNone(u.Drops), orNone(u.Marks), orNone(u.UnmetSeconds))
	}
	return w.Flush()
}
