package report

import (
	"fmt"
	"io"

	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/measure"
)

// WriteComparisons prints a line for each compared pair and, for more than one pair, a ranking.
func WriteComparisons(w io.Writer, pairs []measure.Comparison) error {
	rows := [][]string{{"FIRST", "SECOND", "SECOND / FIRST", "SENT", "TIME"}}
	for _, p := range pairs {
		took := ""
		if p.Seconds > 0 {
			took = fmt.Sprintf("%.2f s", p.Seconds)
		}
		rows = append(rows, []string{p.First, p.Second, plain(p.Result.Ratio), probe.FormatBytes(float64(p.Bytes)), took})
	}
	if err := text.Table(w, "", rows); err != nil {
		return err
	}
	for _, p := range pairs {
		for _, n := range p.Result.Notes {
			fmt.Fprintf(w, "%s, %s: %s\n", p.First, p.Second, n)
		}
	}
	return writeRanking(w, pairs)
}

// writeRanking prints a ranking of more than two servers, relative to the fastest.
func writeRanking(w io.Writer, pairs []measure.Comparison) error {
	if len(pairs) < 2 {
		return nil
	}
	rows := [][]string{{"RANK", "HOST", "RELATIVE CAPACITY"}}
	for i, r := range measure.Rank(pairs) {
		rows = append(rows, []string{fmt.Sprint(i + 1), r.Host, plain(r.Relative)})
	}
	fmt.Fprintln(w)
	return text.Table(w, "", rows)
}
