package meter

import (
	"encoding/binary"
	"fmt"
	"time"
)

// Series has a flow's arrivals.
type Series struct {
	// Bin is the length of one bin.
	Bin time.Duration
	// Bytes are layer-2 bytes per bin from the start. Bins after the last arrival exist and are 0.
	Bytes []uint64
}

// Series reads the flow's arrivals until now.
func (m *Meter) Series(flow string) (Series, error) {
	s := Series{Bin: m.options.Bin, Bytes: make([]uint64, m.perFlow)}
	i, ok := m.flows[flow]
	if !ok {
		return s, fmt.Errorf("the meter has no flow %q", flow)
	}
	raw := make([]byte, 8*m.perFlow)
	if _, err := m.memory.ReadAt(raw, int64(i)*int64(len(raw))); err != nil {
		return s, fmt.Errorf("cannot read the bins of flow %q: %w", flow, err)
	}
	for b := range s.Bytes {
		s.Bytes[b] = binary.NativeEndian.Uint64(raw[8*b:])
	}
	return s, nil
}

// Totals has a flow's counts from the start.
type Totals struct {
	Bytes   uint64 // layer 2, in all bins
	Packets uint64 // frames, as on a wire
	// SKBs counts packets as the kernel handled them: a super-packet is one.
	SKBs uint64
	// OutsideBytes arrived before the start or after the last bin.
	OutsideBytes uint64
}

// Totals reads a flow's counts.
func (m *Meter) Totals(flow string) (Totals, error) {
	i, ok := m.flows[flow]
	if !ok {
		return Totals{}, fmt.Errorf("the meter has no flow %q", flow)
	}
	var t totals
	err := m.objects.FlowTotals.Lookup(i, &t)
	return Totals(t), err
}

// Sum returns the bytes that arrived in [from, to), in whole bins.
func (s Series) Sum(from, to time.Duration) (bytes uint64) {
	for i := s.bin(from); i < s.bin(to); i++ {
		bytes += s.Bytes[i]
	}
	return bytes
}

// Rate returns Sum in bits per second.
func (s Series) Rate(from, to time.Duration) float64 {
	if to <= from {
		return 0
	}
	return float64(s.Sum(from, to)) * 8 / (to - from).Seconds()
}

// Every returns the series in longer bins, for example of 1 s from 1 ms. length must be a multiple of
// Bin; an incomplete last bin is omitted.
func (s Series) Every(length time.Duration) Series {
	n := int(length / s.Bin)
	out := Series{Bin: length, Bytes: make([]uint64, len(s.Bytes)/max(n, 1))}
	for i := range out.Bytes {
		for _, b := range s.Bytes[i*n : (i+1)*n] {
			out.Bytes[i] += b
		}
	}
	return out
}

// Reaches returns the first time, from `from` on, at which the mean rate over the following window is
// at least rate (bits per second): how long a starting flow takes to get its share. ok is false if it
// never does.
func (s Series) Reaches(rate float64, from, window time.Duration) (at time.Duration, ok bool) {
	n := max(int(window/s.Bin), 1)
	need := rate / 8 * (time.Duration(n) * s.Bin).Seconds()
	for i := s.bin(from); i+n <= len(s.Bytes); i++ {
		var sum uint64
		for _, b := range s.Bytes[i : i+n] {
			sum += b
		}
		if float64(sum) >= need {
			return time.Duration(i) * s.Bin, true
		}
	}
	return 0, false
}

func (s Series) bin(at time.Duration) int {
	return min(max(int(at/s.Bin), 0), len(s.Bytes))
}
