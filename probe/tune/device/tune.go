package device

import (
	"context"
	"errors"
	"fmt"
	"time"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/config/diff"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/tune"
	"headgate.dev/headgate/shaper"
)

// Report is the result of Tune.
type Report struct {
	Dev       string                            `json:"dev"`
	Measured  path.Report                       `json:"measured"`
	Proposals map[probe.Direction]tune.Proposal `json:"proposals"`
	// Document is the configuration with the limits, Steps the changes of it.
	Document string       `json:"document,omitempty"`
	Steps    []diff.Entry `json:"steps,omitempty"`
	// Until is the time of the rollback, and Rechecked the measurements with the new limits.
	Until     *time.Time                  `json:"in_force_until,omitempty"`
	Rechecked map[probe.Direction]Recheck `json:"rechecked,omitempty"`
	// Failed is the error, if applying or measuring again failed.
	Failed string `json:"failed,omitempty"`
}

// Limits returns the number of directions for which a limit is proposed.
func (r *Report) Limits() (n int) {
	for _, p := range r.Proposals {
		if p.Limit > 0 {
			n++
		}
	}
	return n
}

// Tune measures the path through a device, and proposes limits. With Options.Apply it applies them, and measures
// again. The report is nil if nothing was measured, or if the limits conflict with the configuration. With a later
// error, the report has the results until then.
func Tune(ctx context.Context, t *Target, o Options) (*Report, error) {
	r := &Report{Dev: t.Dev}
	var err error
	if r.Measured, r.Proposals, err = Measure(ctx, t, o); err != nil {
		return nil, err
	}
	for d, p := range r.Proposals {
		if p.Limit > 0 {
			t.SetLimit(d, p.Limit)
		}
	}
	if r.Limits() == 0 {
		return r, nil
	}
	var set config.Set
	if r.Document, set, err = t.Document(); err != nil {
		return nil, err
	}
	if r.Steps, err = o.Compare(set); err != nil || o.Apply == nil {
		return r, err
	}
	return r, r.apply(ctx, set, o)
}

// apply applies the limits and measures again.
func (r *Report) apply(ctx context.Context, set config.Set, o Options) error {
	until, err := o.Apply(set)
	if err != nil {
		return err
	}
	if !until.IsZero() {
		r.Until = &until
	}
	r.Rechecked, err = MeasureAgain(ctx, r.Proposals, o.Observe, o)
	switch {
	case errors.Is(err, shaper.ErrNotShaped):
		err = fmt.Errorf("limits were rolled back before the second measurement: --confirm-within %v is too short", o.Within)
	case err != nil:
		err = fmt.Errorf("limits are in force, but the second measurement failed: %w", err)
	}
	for d, c := range r.Rechecked {
		err = errors.Join(err, c.Check(d, r.Proposals[d].Limit))
	}
	if err != nil {
		r.Failed = err.Error()
	}
	return err
}
