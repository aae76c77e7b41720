package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"headgate/api"
	"headgate/probe/path"
)

// probeAgain is between two questions how far a measurement is.
const probeAgain = 300 * time.Millisecond

// localProbeFlags are of measurements from this machine: a host measures as it would without them.
var localProbeFlags = []string{"key-file", "cert", "cert-key", "ca", "direction", "method", "bytes", "time", "capacity", "log", "plots", "watch", "ticks", "ipv4", "ipv6"}

// probeThere has a host of a service measure its path to a peer, and prints what it found.
func (a *app) probeThere(t *there, measure, peer string, f format) error {
	ctx, stop := interrupted()
	defer stop()
	client, err := t.client()
	if err != nil {
		return err
	}
	progress := a.progress(f)
	defer progress.clear()
	begun := time.Now()
	got, err := asked[measuredThere](client.StartProbe(ctx, t.host, nil, api.ProbeRequest{Measure: api.ProbeRequestMeasure(measure), Peer: peer}))
	for err == nil && (got.State == api.Waiting || got.State == api.Running) {
		progress.say("%s: %s, %v", t.host, got.State, time.Since(begun).Round(time.Second))
		if !sleepUntil(ctx, time.Now().Add(probeAgain)) {
			return fmt.Errorf("%s goes on measuring: what it finds is not waited for any more", t.host)
		}
		got, err = t.measured(ctx, client, got.ID)
	}
	progress.clear()
	if err != nil {
		return err
	}
	if got.State == api.Failed {
		return fmt.Errorf("%s cannot measure: %s", t.host, got.Error)
	}
	var report path.Report
	if err := json.Unmarshal(got.Result, &report); err != nil {
		return fmt.Errorf("what %s found cannot be read: %w", t.host, err)
	}
	return a.print(f, report, func(w io.Writer) error { return reportTable(w, &report) })
}

// measuredThere is api.Probe, whose result is to be read in the estimators' terms.
type measuredThere struct {
	ID     string          `json:"id"`
	State  api.ProbeState  `json:"state"`
	Error  string          `json:"error"`
	Result json.RawMessage `json:"result"`
}

// measured is how far a measurement is. One that its controller does not know is lost: its agent was
// started again, or speaks to another controller by now.
func (t *there) measured(ctx context.Context, client *api.Client, id string) (measuredThere, error) {
	got, err := asked[measuredThere](client.GetProbe(ctx, t.host, id))
	if err != nil {
		return got, fmt.Errorf("the measurement of %s is lost: %w", t.host, err)
	}
	return got, nil
}
