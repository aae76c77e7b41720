package cli

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"headgate/internal/wholefile"
	"headgate/probe"
)

// meshMetrics are the Prometheus metrics of a mesh. ok is false for a row without the value.
var meshMetrics = []struct {
	name, help string
	value      func(*meshRow) (v float64, ok bool)
}{
	{"success", "Whether the measurement of the path succeeded.", func(r *meshRow) (float64, bool) {
		if r.Failed != "" {
			return 0, true
		}
		return 1, true
	}},
	{"capacity_bits_per_second", "Capacity of the path, the layer-2 rate of its slowest link.", value(rowCapacity)},
	{"capacity_low_bits_per_second", "Lower end of the capacity's 90 % interval.", low(rowCapacity)},
	{"capacity_high_bits_per_second", "Upper end of the capacity's 90 % interval.", high(rowCapacity)},
	{"token_rate_bits_per_second", "Token rate of the path's limiter, the layer-2 rate of a long transfer.", value(rowTokenRate)},
	{"token_rate_low_bits_per_second", "Lower end of the token rate's 90 % interval.", low(rowTokenRate)},
	{"token_rate_high_bits_per_second", "Upper end of the token rate's 90 % interval.", high(rowTokenRate)},
	{"available_bits_per_second", "Available bandwidth of the path, the layer-2 capacity that cross traffic leaves.", value(rowAvailable)},
	{"available_low_bits_per_second", "Lower end of the available bandwidth's 90 % interval.", low(rowAvailable)},
	{"available_high_bits_per_second", "Upper end of the available bandwidth's 90 % interval.", high(rowAvailable)},
	{"bucket_bytes", "Bucket size of the path's limiter, in layer-2 bytes.", value(rowBucket)},
	{"bucket_low_bytes", "Lower end of the bucket size's 90 % interval.", low(rowBucket)},
	{"loss_ratio", "Share of the probe's packets that were lost.", func(r *meshRow) (float64, bool) {
		if r.Answer == nil {
			return 0, false
		}
		return r.Answer.Lost, true
	}},
	{"round_trip_seconds", "Minimum round-trip time of the handshake.", func(r *meshRow) (float64, bool) { return r.RTT.Seconds(), r.RTT > 0 }},
	{"sent_bytes", "Layer-2 bytes that the measurement sent.", func(r *meshRow) (float64, bool) {
		if r.Answer == nil {
			return 0, false
		}
		return float64(r.Answer.Bytes), true
	}},
	{"duration_seconds", "Duration of the measurement.", func(r *meshRow) (float64, bool) {
		if r.Answer == nil {
			return 0, false
		}
		return r.Answer.Seconds, true
	}},
}

func rowCapacity(r *meshRow) *probe.Estimate { return meshParts[0].of(r.Answer) }

func rowTokenRate(r *meshRow) *probe.Estimate { return meshParts[1].of(r.Answer) }

func rowAvailable(r *meshRow) *probe.Estimate { return meshParts[2].of(r.Answer) }

func rowBucket(r *meshRow) *probe.Estimate {
	if r.Answer.TokenRate == nil {
		return nil
	}
	return &r.Answer.TokenRate.Bucket
}

type ofRow = func(*meshRow) *probe.Estimate

// knownEstimate returns the estimate of a row, or nil without a value.
func knownEstimate(of ofRow, r *meshRow) *probe.Estimate {
	if r.Answer == nil {
		return nil
	}
	if e := of(r); e != nil && e.Known() {
		return e
	}
	return nil
}

// value returns no value for an estimate that is only a lower bound. low returns the bound.
func value(of ofRow) func(*meshRow) (float64, bool) {
	return func(r *meshRow) (float64, bool) {
		if e := knownEstimate(of, r); e != nil && !e.AtLeast {
			return e.Value, true
		}
		return 0, false
	}
}

func low(of ofRow) func(*meshRow) (float64, bool) {
	return func(r *meshRow) (float64, bool) {
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

func high(of ofRow) func(*meshRow) (float64, bool) {
	return func(r *meshRow) (float64, bool) {
		if e := knownEstimate(of, r); e != nil && !e.AtLeast {
			return e.High, e.High > 0
		}
		return 0, false
	}
}

// prometheus writes the text format, version 0.0.4.
func (m *meshRun) prometheus(w io.Writer, now time.Time) error {
	var b strings.Builder
	head := func(name, help string) {
		fmt.Fprintf(&b, "# HELP headgate_probe_%s %s\n# TYPE headgate_probe_%[1]s gauge\n", name, help)
	}
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	for _, metric := range meshMetrics {
		said := false
		for i := range m.rows {
			r := &m.rows[i]
			v, ok := metric.value(r)
			// Values of a failed measurement are left out, because they are incomplete.
			if !ok || r.Failed != "" && metric.name != "success" {
				continue
			}
			if !said {
				head(metric.name, metric.help)
				said = true
			}
			// Package config allows only names that need no escaping in a label.
			fmt.Fprintf(&b, "headgate_probe_%s{from=%q,to=%q} %s\n", metric.name, r.From, r.To, number(v))
		}
	}
	head("mesh_finished_timestamp_seconds", "Time at which the mesh finished.")
	fmt.Fprintf(&b, "headgate_probe_mesh_finished_timestamp_seconds %s\n", number(float64(now.UnixMilli())/1e3))
	_, err := io.WriteString(w, b.String())
	return err
}

// replaceFile replaces a file atomically: a reader sees the old or the new content.
func replaceFile(path string, write func(io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	return wholefile.Write(path, b.Bytes(), 0o644) // the collector is another user
}
