package device

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/config/diff"
	"headgate.dev/headgate/probe"
)

// Write prints the configuration, and all other output as comments, so that the output is a valid
// configuration.
func (r *Report) Write(w io.Writer) error {
	comment := func(format string, args ...any) { writeComment(w, fmt.Sprintf(format, args...)) }
	comment("%s to %s, round trip %v", r.Dev, r.Measured.Host, r.Measured.RTT.Round(10*time.Microsecond))
	for _, d := range slices.Backward(slices.Sorted(maps.Keys(r.Proposals))) { // out, in
		p, answer := r.Proposals[d], r.Measured.Directions[d]
		if p.Limit == 0 {
			comment("%s: no limit is proposed: %s", d, p.Cannot)
			continue
		}
		before := ""
		if p.Before > 0 {
			before = fmt.Sprintf(" (now %v)", p.Before)
		}
		comment("%s: token rate %s, bucket %s: limit %v%s", d, answer.TokenRate.Rate.Format(probe.FormatRate), answer.TokenRate.Bucket.Format(probe.FormatBytes), p.Limit, before)
		for _, n := range p.Notes {
			comment("%s: %s", d, n)
		}
	}
	WriteDocument(w, r.Document, r.Steps)
	for _, d := range slices.Backward(slices.Sorted(maps.Keys(r.Rechecked))) {
		c := r.Rechecked[d]
		comment("%s, measured again: %s of %s received, %.2f %% lost on the path, %.2f %% in this host's queue", d, probe.FormatRate(c.Rate), probe.FormatRate(c.Sent), 100*c.PathLoss(), 100*c.QueueLoss)
	}
	if r.Until != nil {
		comment("in force until %s, then rolled back: keep the limits with \"headgate confirm\"", r.Until.Local().Format(time.TimeOnly))
	}
	return nil
}

// WriteDocument prints a configuration, and its changes as comments.
func WriteDocument(w io.Writer, document string, changes []diff.Entry) {
	fmt.Fprint(w, document)
	var plan strings.Builder
	diff.Write(&plan, changes)
	writeComment(w, plan.String())
}

// writeComment prints a text as comments of a configuration.
func writeComment(w io.Writer, text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintln(w, strings.TrimRight("# "+line, "\n "))
	}
}
