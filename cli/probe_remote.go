package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/internal/sleep"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/report"
)

// pollInterval is the interval between polls of a measurement's state.
const pollInterval = 300 * time.Millisecond

// localOnlyFlags are the flags of measurements from this machine. They cannot be used with --server.
var localOnlyFlags = []string{"key-file", "cert", "cert-key", "ca", "direction", "method", "bytes", "time", "capacity", "log", "plots", "watch", "ticks", "ipv4", "ipv6"}

// probeRemote makes a host of a service measure its path to a peer, and prints the report.
func (a *app) probeRemote(t *remoteHost, measure, peer string, f format) error {
	ctx, stop := interrupted()
	defer stop()
	client, err := t.client()
	if err != nil {
		return err
	}
	progress := a.progress(f)
	defer progress.Clear()
	begun := time.Now()
	got, err := api.Decode[remoteProbe](client.StartProbe(ctx, t.host, nil, api.ProbeRequest{Measure: api.ProbeRequestMeasure(measure), Peer: peer}))
	for err == nil && (got.State == api.Waiting || got.State == api.Running) {
		progress.Show(fmt.Sprintf("%s: %s, %v", t.host, got.State, time.Since(begun).Round(time.Second)))
		if !sleep.Until(ctx, time.Now().Add(pollInterval)) {
			return fmt.Errorf("interrupted: %s continues the measurement", t.host)
		}
		got, err = t.measured(ctx, client, got.ID)
	}
	progress.Clear()
	if err != nil {
		return err
	}
	if got.State == api.Failed {
		return fmt.Errorf("%s cannot measure: %s", t.host, got.Error)
	}
	var result path.Report
	if err := json.Unmarshal(got.Result, &result); err != nil {
		return fmt.Errorf("cannot parse the result of %s: %w", t.host, err)
	}
	return a.print(f, result, func(w io.Writer) error { return report.Write(w, &result) })
}

// remoteProbe is api.Probe with an undecoded result, for decoding as a path.Report.
type remoteProbe struct {
	ID     string          `json:"id"`
	State  api.ProbeState  `json:"state"`
	Error  string          `json:"error"`
	Result json.RawMessage `json:"result"`
}

// measured returns the state of a measurement. The measurement is lost if the controller does not know
// it: the agent restarted, or connected to another controller.
func (t *remoteHost) measured(ctx context.Context, client *api.Client, id string) (remoteProbe, error) {
	got, err := api.Decode[remoteProbe](client.GetProbe(ctx, t.host, id))
	if err != nil {
		return got, fmt.Errorf("measurement of %s lost: %w", t.host, err)
	}
	return got, nil
}
