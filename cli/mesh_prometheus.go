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

// meshMetrics are what a mesh is as Prometheus text. ok is false where there is none.
var meshMetrics = []struct {
	name, help string
	value      func(*meshRow) (v float64, ok bool)
}{
	{"success", "Whether the path was measured to the end.", func(r *meshRow) (float64, bool) {
		if r.Failed != "" {
			return 0, true
		}
		return 1, true
	}},
	{"capacity_bits_per_second", "Rate of the narrow link, of layer 2.", value(rowCapacity)},
	{"capacity_low_bits_per_second", "Lower end of the capacity's 90 % interval.", low(rowCapacity)},
	{"capacity_high_bits_per_second", "Upper end of the capacity's 90 % interval.", high(rowCapacity)},
	{"token_rate_bits_per_second", "Rate that a long transfer gets, of layer 2.", value(rowTokenRate)},
	{"token_rate_low_bits_per_second", "Lower end of the token rate's 90 % interval.", low(rowTokenRate)},
	{"token_rate_high_bits_per_second", "Upper end of the token rate's 90 % interval.", high(rowTokenRate)},
	{"available_bits_per_second", "What others leave, of layer 2.", value(rowAvailable)},
	{"available_low_bits_per_second", "Lower end of the available bandwidth's 90 % interval.", low(rowAvailable)},
	{"available_high_bits_per_second", "Upper end of the available bandwidth's 90 % interval.", high(rowAvailable)},
	{"bucket_bytes", "What passes before the token rate holds, of layer 2.", value(rowBucket)},
	{"bucket_low_bytes", "Lower end of the bucket's 90 % interval.", low(rowBucket)},
	{"loss_ratio", "Part of the probe's packets that did not arrive.", func(r *meshRow) (float64, bool) {
		if r.Answer == nil {
			return 0, false
		}
		return r.Answer.Lost, true
	}},
	{"round_trip_seconds", "Least round trip of the handshake.", func(r *meshRow) (float64, bool) { return r.RTT.Seconds(), r.RTT > 0 }},
	{"sent_bytes", "What the measurement sent, of layer 2.", func(r *meshRow) (float64, bool) {
		if r.Answer == nil {
			return 0, false
		}
		return float64(r.Answer.Bytes), true
	}},
	{"duration_seconds", "How long the measurement took.", func(r *meshRow) (float64, bool) {
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

// known is an estimate with a value, or nil.
func known(of ofRow, r *meshRow) *probe.Estimate {
	if r.Answer == nil {
		return nil
	}
	if e := of(r); e != nil && e.Known() {
		return e
	}
	return nil
}

// value is left out where there is only a bound: that is in low.
func value(of ofRow) func(*meshRow) (float64, bool) {
	return func(r *meshRow) (float64, bool) {
		if e := known(of, r); e != nil && !e.AtLeast {
			return e.Value, true
		}
		return 0, false
	}
}

func low(of ofRow) func(*meshRow) (float64, bool) {
	return func(r *meshRow) (float64, bool) {
		switch e := known(of, r); {
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
		if e := known(of, r); e != nil && !e.AtLeast {
			return e.High, e.High > 0
		}
		return 0, false
	}
}

// prometheus writes the text format, version 0.0.4.
func (m *meshing) prometheus(w io.Writer, now time.Time) error {
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
			// What half a measurement says is no value to watch.
			if !ok || r.Failed != "" && metric.name != "success" {
				continue
			}
			if !said {
				head(metric.name, metric.help)
				said = true
			}
			// Names have no character that a label would escape (package config).
			fmt.Fprintf(&b, "headgate_probe_%s{from=%q,to=%q} %s\n", metric.name, r.From, r.To, number(v))
		}
	}
	head("mesh_finished_timestamp_seconds", "When the mesh was done.")
	fmt.Fprintf(&b, "headgate_probe_mesh_finished_timestamp_seconds %s\n", number(float64(now.UnixMilli())/1e3))
	_, err := io.WriteString(w, b.String())
	return err
}

// replaceFile writes a file in one step: who reads it sees the old or the new one.
func replaceFile(path string, write func(io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	return wholefile.Write(path, b.Bytes(), 0o644) // the collector is another user
}
