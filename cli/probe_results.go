package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"headgate/api"
	"headgate/probe/path"
	"headgate/probe/schedule"
)

// mostPage is what one answer of the service may have.
const mostPage = 1000

// probeResult is one of the service's, with what was found in the estimators' terms.
type probeResult struct {
	schedule.Task
	At      time.Time     `json:"at,omitzero"`
	RTT     time.Duration `json:"rtt_ns,omitempty"`
	Answer  *path.Answer  `json:"answer,omitempty"`
	Tried   time.Time     `json:"tried"`
	Trouble string        `json:"trouble,omitempty"`
}

func probeResultsCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "results",
		Short: "Show what hosts of a service found by their schedule",
		Long: `Results prints the newest of each direction between two hosts, and what could not be measured;
with --all also those before. The service keeps from 10 to 100 of each direction and measure, for 90
days at the most.`,
		Example: `  headgate probe results
  headgate probe results --from web1 --to web2 --measure tokenrate --all --since 48h
  headgate probe results -o json`,
		Args: cobra.NoArgs,
	}
	server, output := serverFlag(c), outputFlag(c)
	from := c.Flags().String("from", "", "from this `HOST` alone")
	to := c.Flags().String("to", "", "to this `HOST` alone")
	measure := c.Flags().String("measure", "", "this measure alone: path, capacity, tokenrate, limiter or available")
	all := c.Flags().Bool("all", false, "not the newest alone")
	since := c.Flags().Duration("since", 0, "of this time alone, such as 48h")
	completeFlag(c, "from", completeHosts(server))
	completeFlag(c, "to", completeHosts(server))
	completeFlag(c, "measure", oneOf(schedule.Measures...))
	c.RunE = func(c *cobra.Command, _ []string) error {
		client, err := service(*server)
		if err != nil {
			return err
		}
		most, newest := mostPage, !*all
		p := api.ListProbeResultsParams{From: given(*from), To: given(*to), Newest: &newest, Limit: &most}
		if *measure != "" {
			m := api.ProbeMeasure(*measure)
			p.Measure = &m
		}
		if *since > 0 {
			at := time.Now().Add(-*since).UTC()
			p.Since = &at
		}
		found, err := every(func(after *string) ([]json.RawMessage, *string, error) {
			p.After = after
			page, err := asked[struct {
				Items []json.RawMessage `json:"items"`
				Next  *string           `json:"next"`
			}](client.ListProbeResults(c.Context(), &p))
			return page.Items, page.Next, err
		})
		if err != nil {
			return err
		}
		return a.print(*output, found, func(w io.Writer) error { return resultsTable(w, found) })
	}
	return c
}

// errNoResults is said where nothing was measured.
var errNoResults = errors.New("nothing was measured yet: \"headgate probe schedule show\" says what is to be")

// resultsTable prints a line for each.
func resultsTable(w io.Writer, found []json.RawMessage) error {
	if len(found) == 0 {
		return errNoResults
	}
	rows := [][]string{{"FROM", "TO", "MEASURE", "AT", "FOUND"}}
	for _, text := range found {
		var r probeResult
		if err := json.Unmarshal(text, &r); err != nil {
			return fmt.Errorf("a result cannot be read: %w", err)
		}
		at := "-"
		if !r.At.IsZero() {
			at = r.At.Local().Format(time.DateTime)
		}
		rows = append(rows, []string{r.From, r.To, r.Measure, at, r.text()})
	}
	return table(w, "", rows)
}

// text is what was found, in a line.
func (r probeResult) text() (text string) {
	add := func(name, value string) {
		if text != "" {
			text += ", "
		}
		text += name + " " + value
	}
	if a := r.Answer; a != nil {
		for _, row := range answerRows {
			switch row.name {
			case "capacity", "token rate", "bucket", "limiter", "available":
				if cell := row.cell(a); cell != "" && (row.name != "capacity" || r.Measure == "capacity" || r.Measure == "path") {
					add(row.name, cell)
				}
			}
		}
	}
	if r.Trouble != "" {
		add("in vain at", r.Tried.Local().Format(time.DateTime)+": "+r.Trouble)
	}
	return text
}
