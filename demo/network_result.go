package demo

import (
	"fmt"
	"io"
	"strings"

	"headgate.dev/headgate/demo/sites"
	"headgate.dev/headgate/internal/text"
)

// NetworkResult is the result of a demo of a network.
type NetworkResult struct {
	Network  sites.Network   `json:"network"`
	Promises []sites.Promise `json:"promises"`
	// Disturbed describes the load of other programs on the machine, "" if it was low.
	Disturbed string   `json:"disturbed,omitempty"`
	CleanedUp bool     `json:"cleaned_up"`
	Left      []string `json:"left,omitempty"` // remains after the cleanup
	OK        bool     `json:"ok"`
}

// finish judges the result after the cleanup.
func (r *NetworkResult) finish(left []string, err error) {
	r.Left, r.CleanedUp = left, err == nil && len(left) == 0
	r.OK = r.CleanedUp && r.broken() == 0
}

func (r *NetworkResult) broken() (n int) {
	for _, p := range r.Promises {
		if !p.OK {
			n++
		}
	}
	return n
}

// Write prints the promises as a table in 80 columns, and a summary.
func (r *NetworkResult) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%-37s %15s %7s\n", "what", "promised", "is")
	for _, p := range r.Promises {
		fmt.Fprintln(&b, p)
	}
	b.WriteString("\n")
	if n := r.broken(); n == 0 {
		fmt.Fprintf(&b, "All %d promises were kept", len(r.Promises))
	} else {
		fmt.Fprintf(&b, "%d of %d promises were BROKEN", n, len(r.Promises))
	}
	fmt.Fprintf(&b, ", with seed %d.\n", r.Network.Seed)
	if r.Disturbed != "" && r.broken() > 0 {
		b.WriteString(strings.Join(text.Wrap("The machine was busy, which may be the cause: "+r.Disturbed+".", "", 78), "\n") + "\n")
	}
	if r.CleanedUp {
		b.WriteString("Cleaned up: all of the demo is removed.\n")
	} else {
		fmt.Fprintf(&b, "NOT cleaned up: %s\n", strings.Join(r.Left, ", "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
