package host

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/internal/sleep"
	"headgate.dev/headgate/probe/path"
)

// pollInterval is the interval between polls of a measurement's state.
const pollInterval = 300 * time.Millisecond

// Probe makes the host measure its path to a peer, and returns the report. show, which may be nil, gets the state of
// the measurement while it lasts. If ctx ends first, the host continues the measurement.
func (h Host) Probe(ctx context.Context, measure, peer string, show func(state string)) (r path.Report, err error) {
	got, err := api.Decode[measurement](h.Client.StartProbe(ctx, h.Name, nil, api.ProbeRequest{Measure: api.ProbeMeasure(measure), Peer: peer}))
	for err == nil && (got.State == api.Waiting || got.State == api.Running) {
		if show != nil {
			show(string(got.State))
		}
		if !sleep.Until(ctx, time.Now().Add(pollInterval)) {
			return r, fmt.Errorf("interrupted: %s continues the measurement", h.Name)
		}
		got, err = h.measurement(ctx, got.ID)
	}
	if err != nil {
		return r, err
	}
	if got.State == api.Failed {
		return r, fmt.Errorf("%s cannot measure: %s", h.Name, got.Error)
	}
	if err := json.Unmarshal(got.Result, &r); err != nil {
		return r, fmt.Errorf("cannot parse the result of %s: %w", h.Name, err)
	}
	return r, nil
}

// measurement is api.Probe with an undecoded result, for decoding as a path.Report.
type measurement struct {
	ID     string          `json:"id"`
	State  api.ProbeState  `json:"state"`
	Error  string          `json:"error"`
	Result json.RawMessage `json:"result"`
}

// measurement returns the state of a measurement. The measurement is lost if the controller does not know
// it: the agent restarted, or connected to another controller.
func (h Host) measurement(ctx context.Context, id string) (measurement, error) {
	got, err := api.Decode[measurement](h.Client.GetProbe(ctx, h.Name, id))
	if err != nil {
		return got, fmt.Errorf("measurement of %s lost: %w", h.Name, err)
	}
	return got, nil
}
