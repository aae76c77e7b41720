package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/config"
	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/schedule"
)

const scheduleExample = `  measures:
    - {measure: tokenrate, every: 6h}    # or path, capacity, limiter, available
    - {measure: available, every: 30m}
    # - {measure: credits, every: 24h}   # burst credits: 90MB in each direction, or the measure's own bytes
  bytes: 5MB            # at most, in each direction of a measurement
  budget: 1GB           # per day and host
  quiet:
    - {days: [mon, tue, wed, thu, fri], from: "08:00", to: "18:00"}
  zone: Europe/Berlin
  hosts:                # default: all
    - {host: web1}
    - {host: web2, address: 10.0.0.2, links: [uplink]}
    - {host: web3, links: [uplink]}
  pairs:                # default: all pairs
    - [web1, web2]
    - [web1, web3]`

func probeScheduleCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "schedule",
		Short: "Manage the probe schedule of a service",
		Long: `Schedule sets which hosts of a service measure which paths, and how often. A host, or a link that
several hosts share, takes part in one measurement at a time. Each host has a budget of bytes per
day, and no measurement starts in quiet hours. "headgate probe results" shows the results.`,
		Args: cobra.ArbitraryArgs,
		RunE: helpOrUnknown,
	}
	c.AddCommand(probeScheduleSetCommand(a), probeScheduleShowCommand(a), probeScheduleRemoveCommand(a))
	return c
}

func probeScheduleSetCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "set -f FILE",
		Short: "Create or replace the schedule",
		Long: `Set creates or replaces the probe schedule of a service from a file, as YAML or JSON:

` + scheduleExample + `

A measurement sends at most twice its bytes, plus a quarter for control traffic. The service reserves
this amount of the budget before the measurement starts, and charges the bytes actually sent at the
end. The address of a host is where other hosts reach it; the default is the source address of its
agent. For each measurement the agent opens TCP and UDP port 4950, or the port of the address, for
the measuring host only.

Measurements that are running when the schedule changes are finished.`,
		Example: `  headgate probe schedule set -f schedule.yaml --dry-run
  headgate probe schedule show -o yaml > schedule.yaml`,
		Args: cobra.NoArgs,
	}
	var want schedule.Schedule
	file := c.Flags().StringP("file", "f", "", "the `FILE`; - is standard input")
	requireFlags(c, "file")
	change(a, c, "probe schedule", getSchedule, func(q request, _ schedule.Schedule, tag *string) (is schedule.Schedule, err error) {
		body, err := json.Marshal(want)
		if err != nil {
			return is, err
		}
		return api.Decode[schedule.Schedule](q.client.PutProbeScheduleWithBody(q.ctx, &api.PutProbeScheduleParams{IfMatch: tag, DryRun: q.dry}, "application/json", bytes.NewReader(body)))
	})
	put := c.RunE // the file is read first: its mistakes need no service
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		if want, err = config.LoadSchedule(*file, a.in); err != nil {
			return err
		}
		return put(c, args)
	}
	return c
}

func getSchedule(q request) (*http.Response, error) { return q.client.GetProbeSchedule(q.ctx) }

func probeScheduleShowCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "show",
		Short: "Show the schedule, running measurements, and today's bytes",
		Long: `Show prints the schedule, the running measurements, and the bytes that measurements sent through
each host today. With -o json or yaml it prints only the schedule, in the format of "set".`,
		Example: "  headgate probe schedule show\n  headgate probe schedule show -o yaml > schedule.yaml", Args: cobra.NoArgs,
	}
	var state api.ProbingState
	query(a, c, func(q request) (s schedule.Schedule, err error) {
		if s, err = api.Decode[schedule.Schedule](getSchedule(q)); err != nil {
			return s, err
		}
		state, err = api.Decode[api.ProbingState](q.client.GetProbeState(q.ctx))
		return s, err
	}, func(w io.Writer, s schedule.Schedule) error { return scheduleTable(w, &s, state) })
	return c
}

// scheduleTable prints a schedule and its state as text.
func scheduleTable(w io.Writer, s *schedule.Schedule, state api.ProbingState) error {
	who := "all pairs of hosts"
	switch {
	case len(s.Pairs) > 0:
		var pairs []string
		for _, p := range s.Pairs {
			pairs = append(pairs, p[0]+" and "+p[1])
		}
		who = strings.Join(pairs, ", ")
	case len(s.Hosts) > 0:
		var names []string
		for _, h := range s.Hosts {
			names = append(names, h.Host)
		}
		who = "all pairs of " + strings.Join(names, ", ")
	}
	rows := [][]string{{"HOSTS", who}}
	for _, m := range s.Measures {
		what := fmt.Sprintf("%s every %v", m.Measure, m.Every)
		if bytes, longest := s.Bounds(m.Measure); bytes != s.Bytes || longest != s.Time {
			what += fmt.Sprintf(", %v and %v in each direction", bytes, longest)
		}
		rows = append(rows, []string{"MEASURE", what})
	}
	rows = append(rows, []string{"BUDGET", fmt.Sprintf("%v and %v in each direction, %v per day and host", s.Bytes, s.Time, s.Budget)})
	for _, q := range s.Quiet {
		on := "every day"
		if len(q.Days) > 0 {
			on = strings.Join(q.Days, ", ")
		}
		rows = append(rows, []string{"QUIET", fmt.Sprintf("%v to %v, %s (%s)", q.From, q.To, on, s.Zone)})
	}
	now := "nothing"
	if state.Quiet != nil && *state.Quiet {
		now = "nothing: quiet hours"
	}
	for _, r := range state.Running {
		rows = append(rows, []string{"NOW", fmt.Sprintf("%s from %s to %s, since %s", r.Measure, r.From, r.To, r.Began.Local().Format(time.TimeOnly))})
	}
	if len(state.Running) == 0 {
		rows = append(rows, []string{"NOW", now})
	}
	for _, h := range state.Spent {
		rows = append(rows, []string{"TODAY", fmt.Sprintf("%s: %s", h.Host, probe.FormatBytes(float64(h.UsedBytes)))})
	}
	return text.Table(w, "", rows)
}

func probeScheduleRemoveCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "remove",
		Short:   "Delete the schedule; keep the results",
		Example: "  headgate probe schedule remove", Args: cobra.NoArgs,
	}
	remove(a, c, "probe schedule", func(q request) (*http.Response, error) {
		return q.client.DeleteProbeSchedule(q.ctx, &api.DeleteProbeScheduleParams{DryRun: q.dry})
	})
	return c
}
