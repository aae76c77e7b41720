package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/report"
	"headgate.dev/headgate/probe/schedule"
	"headgate.dev/headgate/unit"
)

// maxPage is the largest number of results that the service returns in a page.
const maxPage = 1000

// probeResult is a result of the service, with the answer in the estimators' type.
type probeResult struct {
	schedule.Task
	At        time.Time     `json:"at,omitzero"`
	RTT       time.Duration `json:"rtt_ns,omitempty"`
	Answer    *probeAnswer  `json:"answer,omitempty"`
	Attempted time.Time     `json:"attempted"`
	Error     string        `json:"error,omitempty"`
}

// probeAnswer is an answer as the service shows it: the amount that was sent is a number.
type probeAnswer struct {
	path.Answer
	SentBytes uint64 `json:"sent_bytes"`
}

func probeResultsCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "results",
		Short: "Show the results of a service's probe schedule",
		Long: `Results prints the newest result of each direction between two hosts, and failed measurements; with
--all also older results. The service keeps 10 to 100 results of each direction and measure, for at
most 90 days.`,
		Example: `  headgate probe results
  headgate probe results --from web1 --to web2 --measure tokenrate --all --since 48h
  headgate probe results -o json`,
		Args: cobra.NoArgs,
	}
	from := c.Flags().String("from", "", "only from this `HOST`")
	to := c.Flags().String("to", "", "only to this `HOST`")
	measure := c.Flags().String("measure", "", "only this measure: path, capacity, tokenrate, limiter, available or credits")
	all := c.Flags().Bool("all", false, "also older results")
	since := c.Flags().Duration("since", 0, "only results newer than this, such as 48h")
	server := query(a, c, func(q request) ([]json.RawMessage, error) {
		limit, newest := maxPage, !*all
		p := api.ListProbeResultsParams{From: optional(*from), To: optional(*to), Newest: &newest, Limit: &limit}
		if *measure != "" {
			m := api.ProbeMeasure(*measure)
			p.Measure = &m
		}
		if *since > 0 {
			at := time.Now().Add(-*since).UTC()
			p.Since = &at
		}
		return api.ListAll(func(after *string) ([]json.RawMessage, *string, error) {
			p.After = after
			page, err := api.Decode[struct {
				Items []json.RawMessage `json:"items"`
				Next  *string           `json:"next"`
			}](q.client.ListProbeResults(q.ctx, &p))
			return page.Items, page.Next, err
		})
	}, resultsTable)
	completeFlag(c, "from", hosts.complete(server))
	completeFlag(c, "to", hosts.complete(server))
	completeFlag(c, "measure", oneOf(schedule.Measures...))
	return c
}

// errNoResults is the error if there are no results.
var errNoResults = errors.New("no probe results yet: see \"headgate probe schedule show\"")

// resultsTable prints a line for each result.
func resultsTable(w io.Writer, found []json.RawMessage) error {
	if len(found) == 0 {
		return errNoResults
	}
	rows := [][]string{{"FROM", "TO", "MEASURE", "TIME", "RESULT"}}
	for _, text := range found {
		var r probeResult
		if err := json.Unmarshal(text, &r); err != nil {
			return fmt.Errorf("cannot parse a result: %w", err)
		}
		at := "-"
		if !r.At.IsZero() {
			at = r.At.Local().Format(time.DateTime)
		}
		rows = append(rows, []string{r.From, r.To, r.Measure, at, r.text()})
	}
	return text.Table(w, "", rows)
}

// text returns the result as a line.
func (r probeResult) text() (text string) {
	if r.Answer != nil {
		r.Answer.Bytes = unit.Bytes(r.Answer.SentBytes)
		text = report.Line(&r.Answer.Answer, r.Measure)
	}
	if r.Error != "" {
		if text != "" {
			text += ", "
		}
		text += "failed at " + r.Attempted.Local().Format(time.DateTime) + ": " + r.Error
	}
	return text
}
