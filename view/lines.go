package view

import (
	"encoding/json"
	"fmt"
	"headgate.dev/headgate/unit/rounded"
	"io"
	"strings"
	"time"
)

// WriteLines prints a frame as lines for programs and for grep: one line for each
// group, which begins with time, device, direction and group. All lines have the same
// fields in the same order. A device at its first observation has no rates, and so no
// lines.
func WriteLines(w io.Writer, f Frame) error {
	var b strings.Builder
	at := f.At.UTC().Format("2006-01-02T15:04:05.000Z")
	for _, d := range f.Devices {
		if d.Removed {
			fmt.Fprintf(&b, "%s dev=%s gone\n", at, d.Dev)
		}
		if d.Seconds == 0 {
			continue
		}
		for _, dir := range d.Directions {
			for _, r := range append(append([]Row{}, dir.Groups...), dir.Control, dir.Total) {
				if r.Path == "" {
					continue
				}
				fmt.Fprintf(&b, "%s dev=%s dir=%s group=%s rate=%s guarantee=%s ceiling=%s borrowed=%s lent=%s drops/s=%s marks/s=%s delay=%s backlog=%s\n",
					at, d.Dev, dir.Name, r.Path, rounded.Rate(r.Rate), rounded.Amount(r.Guarantee), rounded.Amount(r.Ceiling), rounded.Rate(r.Borrowed), rounded.Rate(r.Lent),
					rounded.PerSecond(r.Drops), rounded.PerSecond(r.Marks), rounded.Delay(r.Delay), rounded.Bytes(r.Backlog))
			}
		}
		for _, s := range d.Foreign {
			fmt.Fprintf(&b, "%s dev=%s foreign=%q\n", at, d.Dev, s)
		}
		for _, s := range d.Drift {
			fmt.Fprintf(&b, "%s dev=%s drift=%q\n", at, d.Dev, s)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteJSON prints a frame as one line of JSON.
func WriteJSON(w io.Writer, f Frame) error {
	f.At = f.At.Round(time.Microsecond).UTC()
	return json.NewEncoder(w).Encode(f)
}

// WriteFrame draws a frame once, as Screen does.
func WriteFrame(w io.Writer, f Frame, width int) error {
	heading, lines := Render(f, Options{Width: width, Theme: NewTheme(w)})
	for _, line := range append([]string{heading}, lines...) {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}
