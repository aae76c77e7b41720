// Package plots draws the samples of a path with the answer of package path: the dispersion, the
// arrival curve and the delays. Rates are Mbit/s and sizes are kB, both of layer 2.
package plots

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"

	"headgate.dev/headgate/internal/plot"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/path"
)

// Save writes plots of a direction's samples into a folder, which it creates: the dispersion with the
// capacity, the arrival curve with the bucket, and the delay of each packet. File names begin with the
// direction.
func Save(dir string, d probe.Direction, samples []probe.Sample, a *path.Answer) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var errs []error
	for _, draw := range []func([]probe.Sample, *path.Answer) (plot.Plot, bool){dispersionPlot, curvePlot, delayPlot} {
		if p, ok := draw(samples, a); ok {
			p.File = string(d) + "-" + p.File
			errs = append(errs, p.Save(dir))
		}
	}
	return errors.Join(errs...)
}

// dispersionPlot is a histogram of the dispersion rates of the bursts for the capacity.
func dispersionPlot(samples []probe.Sample, a *path.Answer) (p plot.Plot, ok bool) {
	var rates []float64
	for i := range samples {
		if strings.HasPrefix(samples[i].Purpose, "capacity/") {
			for _, part := range samples[i].Split() {
				rates = append(rates, part.DispersionRates()...)
			}
		}
	}
	if len(rates) == 0 {
		return p, false
	}
	highest := 0.0
	for _, r := range rates {
		highest = math.Max(highest, r)
	}
	if c := a.Capacity; c != nil && c.Known() && !c.AtLeast {
		highest = math.Min(highest, 2*a.Capacity.Value)
	}
	kept := rates[:0]
	for _, r := range rates {
		if r <= highest {
			kept = append(kept, r)
		}
	}
	h := probe.NewHistogram(kept, highest/100)
	line := plot.Line{Name: "share of all", Steps: true}
	top := 0.0
	for bin, n := range h.Counts {
		share := 100 * float64(n) / float64(len(rates))
		line.X, line.Y = append(line.X, float64(bin)*h.Width/1e6), append(line.Y, share)
		top = math.Max(top, share)
	}
	p = plot.Plot{File: "dispersion", Title: "Dispersion rates of packets in a burst", X: "rate (Mbit/s, layer 2)", Y: "share (%)", Lines: []plot.Line{line}}
	modes := h.Modes(kept, max(len(kept)/100, 2))
	for i, m := range modes {
		name := ""
		if i == 0 {
			name = "modes"
		}
		p.Lines = append(p.Lines, plot.Line{Name: name, X: []float64{m.At / 1e6, m.At / 1e6}, Y: []float64{0, 100 * float64(m.Count) / float64(len(rates))}, Colour: 4, Dashed: true})
	}
	if a.Capacity != nil && a.Capacity.Known() && !a.Capacity.AtLeast {
		c := a.Capacity.Value / 1e6
		p.Lines = append(p.Lines, plot.Line{Name: fmt.Sprintf("capacity %.4g Mbit/s", c), X: []float64{c, c}, Y: []float64{0, top}, Colour: 1})
	}
	return p, true
}

// longest returns the token rate train with the most arrivals.
func longest(samples []probe.Sample) (s *probe.Sample) {
	for i := range samples {
		if strings.HasPrefix(samples[i].Purpose, "tokenrate/") && (s == nil || len(samples[i].Arrived) > len(s.Arrived)) {
			s = &samples[i]
		}
	}
	if s == nil || len(s.Arrived) < 2 {
		return nil
	}
	return s
}

// curvePlot is the arrival curve of the longest train, with the curve of the estimated token
// rate and bucket.
func curvePlot(samples []probe.Sample, a *path.Answer) (p plot.Plot, ok bool) {
	s := longest(samples)
	if s == nil {
		return p, false
	}
	parts := s.PartOf()
	line := plot.Line{Name: "arrived"}
	bytes, last := 0.0, 0.0
	for _, r := range s.Arrived {
		bytes += float64(s.Parts[parts[r.Number]].Frame())
		last = float64(r.At-s.Arrived[0].At) / 1e6
		line.X, line.Y = append(line.X, last), append(line.Y, bytes/1e3)
	}
	p = plot.Plot{File: "arrival", Title: "Arrival curve of the longest train", X: "time (ms)", Y: "arrived (kB, layer 2)", Lines: []plot.Line{line}}
	if t := a.TokenRate; t != nil && t.Rate.WithoutCarried().Known() {
		bucket, name := 0.0, "token rate"
		if t.Bucket.Known() {
			bucket, name = t.Bucket.Value, "bucket and token rate"
		}
		p.Lines = append(p.Lines, plot.Line{
			Name: name, X: []float64{0, last}, Y: []float64{bucket / 1e3, (bucket + t.Rate.Value*last/8e3) / 1e3}, Colour: 1, Dashed: true,
		})
	}
	return p, true
}

// delayPlot is the one-way delay of each packet of the longest train, above the minimum.
func delayPlot(samples []probe.Sample, _ *path.Answer) (p plot.Plot, ok bool) {
	s := longest(samples)
	if s == nil {
		return p, false
	}
	lowest := math.Inf(1)
	for _, r := range s.Arrived {
		lowest = math.Min(lowest, float64(r.At-s.Sent[r.Number]))
	}
	line := plot.Line{Name: "one-way delay"}
	for _, r := range s.Arrived {
		line.X, line.Y = append(line.X, float64(r.Number)), append(line.Y, (float64(r.At-s.Sent[r.Number])-lowest)/1e6)
	}
	return plot.Plot{File: "delay", Title: "One-way delay above the minimum, longest train", X: "packet", Y: "delay (ms)", Lines: []plot.Line{line}}, true
}
