package mesh

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"headgate.dev/headgate/internal/wholefile"
	"headgate.dev/headgate/probe"
)

// metrics are the Prometheus metrics of a mesh. ok is false for a row without the value.
var metrics = []struct {
	name, help string
	value      func(*Row) (v float64, ok bool)
}{
	{"success", "Whether the measurement of the path succeeded.", func(r *Row) (float64, bool) {
		if r.Failed != "" {
			return 0, true
		}
		return 1, true
	}},
	{"capacity_bits_per_second", "Capacity of the path, the layer-2 rate of its slowest link.", value((*Row).Capacity)},
	{"capacity_low_bits_per_second", "Lower end of the capacity's 90 % interval.", low((*Row).Capacity)},
	{"capacity_high_bits_per_second", "Upper end of the capacity's 90 % interval.", high((*Row).Capacity)},
	{"token_rate_bits_per_second", "Token rate of the path's limiter, the layer-2 rate of a long transfer.", value(tokenRate)},
	{"token_rate_low_bits_per_second", "Lower end of the token rate's 90 % interval.", low(tokenRate)},
	{"token_rate_high_bits_per_second", "Upper end of the token rate's 90 % interval.", high(tokenRate)},
	{"available_bits_per_second", "Available bandwidth of the path, the layer-2 capacity that cross traffic leaves.", value((*Row).Available)},
	{"available_low_bits_per_second", "Lower end of the available bandwidth's 90 % interval.", low((*Row).Available)},
	{"available_high_bits_per_second", "Upper end of the available bandwidth's 90 % interval.", high((*Row).Available)},
	{"bucket_bytes", "Bucket size of the path's limiter, in layer-2 bytes.", value((*Row).Bucket)},
	{"bucket_low_bytes", "Lower end of the bucket size's 90 % interval.", low((*Row).Bucket)},
	{"loss_ratio", "Share of the probe's packets that were lost.", func(r *Row) (float64, bool) {
		if r.Answer == nil {
			return 0, false
		}
		return r.Answer.Lost, true
	}},
	{"round_trip_seconds", "Minimum round-trip time of the handshake.", func(r *Row) (float64, bool) { return r.RTT.Seconds(), r.RTT > 0 }},
	{"sent_bytes", "Layer-2 bytes that the measurement sent.", func(r *Row) (float64, bool) {
		if r.Answer == nil {
			return 0, false
		}
		return float64(r.Answer.Bytes), true
	}},
	{"duration_seconds", "Duration of the measurement.", func(r *Row) (float64, bool) {
		if r.Answer == nil {
			return 0, false
		}
		return r.Answer.Seconds, true
	}},
}

type ofRow = func(*Row) *probe.Estimate

// tokenRate returns the estimate of the token rate, or nil if there is none but a bound for some bytes.
func tokenRate(r *Row) *probe.Estimate {
	if e := r.TokenRate(); e != nil && !e.Carried() {
		return e
	}
	return nil
}

// knownEstimate returns the estimate of a row, or nil without a value.
func knownEstimate(of ofRow, r *Row) *probe.Estimate {
	if e := of(r); e != nil && e.Known() {
		return e
	}
	return nil
}

// value returns no value for an estimate that is only a lower bound. low returns the bound.
func value(of ofRow) func(*Row) (float64, bool) {
	return func(r *Row) (float64, bool) {
		if e := knownEstimate(of, r); e != nil && !e.AtLeast {
			return e.Value, true
		}
		return 0, false
	}
}

func low(of ofRow) func(*Row) (float64, bool) {
	return func(r *Row) (float64, bool) {
		switch e := knownEstimate(of, r); {
		case e == nil:
			return 0, false
		case e.AtLeast && e.Low == 0:
			return e.Value, true
		default:
			return e.Low, e.Low > 0
		}
	}
}

func high(of ofRow) func(*Row) (float64, bool) {
	return func(r *Row) (float64, bool) {
		if e := knownEstimate(of, r); e != nil && !e.AtLeast {
			return e.High, e.High > 0
		}
		return 0, false
	}
}

// WritePrometheus writes the rows of a mesh that finished at a time, in the text format, version 0.0.4.
func (m Rows) WritePrometheus(w io.Writer, finished time.Time) error {
	var b strings.Builder
	head := func(name, help string) {
		fmt.Fprintf(&b, "# HELP headgate_probe_%s %s\n# TYPE headgate_probe_%[1]s gauge\n", name, help)
	}
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	for _, metric := range metrics {
		headed := false
		for i := range m {
			r := &m[i]
			v, ok := metric.value(r)
			// Values of a failed measurement are left out, because they are incomplete.
			if !ok || r.Failed != "" && metric.name != "success" {
				continue
			}
			if !headed {
				head(metric.name, metric.help)
				headed = true
			}
			// Package config allows only names that need no escaping in a label.
			fmt.Fprintf(&b, "headgate_probe_%s{from=%q,to=%q} %s\n", metric.name, r.From, r.To, number(v))
		}
	}
	head("mesh_finished_timestamp_seconds", "Time at which the mesh finished.")
	fmt.Fprintf(&b, "headgate_probe_mesh_finished_timestamp_seconds %s\n", number(float64(finished.UnixMilli())/1e3))
	_, err := io.WriteString(w, b.String())
	return err
}

// WritePrometheusFile replaces a file with the text of WritePrometheus atomically: a reader sees the old or
// the new content.
func (m Rows) WritePrometheusFile(file string, finished time.Time) error {
	var b bytes.Buffer
	if err := m.WritePrometheus(&b, finished); err != nil {
		return err
	}
	return wholefile.Write(file, b.Bytes(), 0o644) // the collector is another user
}
