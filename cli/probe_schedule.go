package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"headgate/api"
	"headgate/probe/schedule"
	"headgate/unit"
)

const scheduleExample = `  measures:
    - {measure: tokenrate, every: 6h}    # or path, capacity, limiter, available
    - {measure: available, every: 30m}
  bytes: 5MB            # in each direction of a measurement, at the most
  budget: 1GB           # a day, through each host
  quiet:
    - {days: [mon, tue, wed, thu, fri], from: "08:00", to: "18:00"}
  zone: Europe/Berlin
  hosts:                # all, without this
    - {host: web1}
    - {host: web2, address: 10.0.0.2, links: [uplink]}
    - {host: web3, links: [uplink]}
  pairs:                # each with each, without this
    - [web1, web2]
    - [web1, web3]`

func probeScheduleCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "schedule",
		Short: "Have hosts of a service measure to each other, again and again",
		Long: `Schedule says which hosts of a service measure to each other, what, and how often: never two
measurements at once through one host, or through a link that some hosts share, within a budget
of bytes a day for each host, and not in quiet hours. "headgate probe results" shows what they
found.`,
		Args: cobra.ArbitraryArgs,
		RunE: helpOrUnknown,
	}
	c.AddCommand(probeScheduleSetCommand(a), probeScheduleShowCommand(a), probeScheduleRemoveCommand(a))
	return c
}

func probeScheduleSetCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "set -f FILE",
		Short: "Set the schedule, in place of the one that there is",
		Long: `Set has the hosts of a service measure to each other as a file says, as YAML or JSON:

` + scheduleExample + `

A measurement sends at most twice its bytes, and a quarter more to speak about it; so much is kept
free of the budget before it begins, and when it is over what it has sent counts. An address is where
others find a host; without one that is where its agent comes from. The agents open TCP and UDP port
4950 there, or another that is written behind the address, for the one that measures and no longer.

What is under way when the schedule changes comes to its end.`,
		Example: `  headgate probe schedule set -f schedule.yaml --dry-run
  headgate probe schedule show -o yaml > schedule.yaml`,
		Args: cobra.NoArgs,
	}
	server, dry, output := serverFlag(c), dryRunFlag(c), outputFlag(c)
	file := c.Flags().StringP("file", "f", "", "the `FILE`; - is standard input")
	required(c, "file")
	c.RunE = func(c *cobra.Command, _ []string) error {
		want, err := readSchedule(*file, a.in)
		if err != nil {
			return err
		}
		client, err := service(*server)
		if err != nil {
			return err
		}
		_, tag, err := current[schedule.Schedule](client.GetProbeSchedule(c.Context()))
		if err != nil {
			return err
		}
		body, err := json.Marshal(want)
		if err != nil {
			return err
		}
		is, err := asked[schedule.Schedule](client.PutProbeScheduleWithBody(c.Context(), &api.PutProbeScheduleParams{IfMatch: tag, DryRun: dry}, "application/json", bytes.NewReader(body)))
		if err != nil {
			return err
		}
		return a.print(*output, is, outcome("the schedule", "of measurements", "set", tag, *dry))
	}
	return c
}

func probeScheduleShowCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "show",
		Short: "Show the schedule, what is being measured, and what that has cost today",
		Long: `Show prints the schedule, which measurements are under way, and what measurements have brought
through each host today. With -o json or yaml it is the schedule alone, as "set" reads it.`,
		Example: "  headgate probe schedule show\n  headgate probe schedule show -o yaml > schedule.yaml", Args: cobra.NoArgs,
	}
	server, output := serverFlag(c), outputFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		client, err := service(*server)
		if err != nil {
			return err
		}
		s, err := asked[schedule.Schedule](client.GetProbeSchedule(c.Context()))
		if err != nil {
			return err
		}
		state, err := asked[api.ProbingState](client.GetProbeState(c.Context()))
		if err != nil {
			return err
		}
		return a.print(*output, s, func(w io.Writer) error { return scheduleTable(w, &s, state) })
	}
	return c
}

// scheduleTable prints a schedule and what is under way for people.
func scheduleTable(w io.Writer, s *schedule.Schedule, state api.ProbingState) error {
	who := "each host with each other"
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
		who = strings.Join(names, ", ") + ", each with each other"
	}
	rows := [][]string{{"HOSTS", who}}
	for _, m := range s.Measures {
		rows = append(rows, []string{"MEASURE", fmt.Sprintf("%s every %v", m.Measure, m.Every)})
	}
	rows = append(rows, []string{"AT THE MOST", fmt.Sprintf("%v and %v in each direction, %v a day through a host", s.Bytes, s.Time, s.Budget)})
	for _, q := range s.Quiet {
		on := "every day"
		if len(q.Days) > 0 {
			on = strings.Join(q.Days, ", ")
		}
		rows = append(rows, []string{"QUIET", fmt.Sprintf("%v to %v, %s (%s)", q.From, q.To, on, s.Zone)})
	}
	now := "nothing"
	if state.Quiet != nil && *state.Quiet {
		now = "nothing: these are quiet hours"
	}
	for _, r := range state.Running {
		rows = append(rows, []string{"NOW", fmt.Sprintf("%s from %s to %s, since %s", r.Measure, r.From, r.To, r.Began.Local().Format(time.TimeOnly))})
	}
	if len(state.Running) == 0 {
		rows = append(rows, []string{"NOW", now})
	}
	for _, h := range state.Spent {
		bytes, err := unit.ParseBytes(h.Bytes)
		if err != nil {
			return err
		}
		rows = append(rows, []string{"TODAY", fmt.Sprintf("%s: %s", h.Host, sizeText(float64(bytes)))})
	}
	return table(w, "", rows)
}

func probeScheduleRemoveCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "remove",
		Short:   "Have nothing measured any more; results stay",
		Example: "  headgate probe schedule remove", Args: cobra.NoArgs,
	}
	server, dry := serverFlag(c), dryRunFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		client, err := service(*server)
		if err != nil {
			return err
		}
		if _, err := asked[struct{}](client.DeleteProbeSchedule(c.Context(), &api.DeleteProbeScheduleParams{DryRun: dry})); err != nil {
			return err
		}
		return outcome("the schedule", "of measurements", "removed", nil, *dry)(a.out)
	}
	return c
}
