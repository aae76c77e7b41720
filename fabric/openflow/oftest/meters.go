package oftest

import (
	"cmp"
	"slices"
	"time"

	"headgate.dev/headgate/fabric/openflow"
)

// meter is an entry of the meter table (section 5.7).
type meter struct {
	id      openflow.MeterID
	flags   openflow.MeterFlags
	bands   []*band
	created time.Time
	updated time.Time // when the buckets were filled
	counter
}

// band drops what exceeds a token bucket. A token is a millionth of a bit or a thousand-millionth of a packet, so that
// the rate times the time in nanoseconds is a whole number of tokens, and tokens are never lost. Open vSwitch counts in
// milliseconds (lib/dpif-netdev.c, dpif_netdev_run_meter); the sums are the same.
type band struct {
	openflow.BandLimit
	tokens uint64
	counter
}

// unitTokens is the tokens of a kbit or a packet.
const unitTokens = 1_000_000_000

const bitTokens = unitTokens / 1000

func (b *band) size() uint64 { return uint64(b.Burst) * unitTokens }

// fill adds the tokens of a time.
func (b *band) fill(d time.Duration) {
	if free := b.size() - b.tokens; uint64(d) > free/uint64(b.Rate) {
		b.tokens = b.size()
	} else {
		b.tokens += uint64(d) * uint64(b.Rate)
	}
}

// fill adds the tokens since the last time.
func (m *meter) fill() {
	now := time.Now()
	for _, b := range m.bands {
		b.fill(now.Sub(m.updated))
	}
	m.updated = now
}

// pass counts a packet, and reports whether it passes. Of the bands whose rate it exceeds, the one with the highest rate
// drops it (section 5.7.1); each of the others has taken its tokens.
func (m *meter) pass(bytes int) bool {
	m.fill()
	m.packets++
	m.bytes += uint64(bytes)
	tokens := uint64(unitTokens)
	if m.flags&openflow.MeterKbps != 0 {
		tokens = uint64(bytes) * 8 * bitTokens
	}
	var hit *band
	for _, b := range m.bands {
		switch {
		case b.tokens >= tokens:
			b.tokens -= tokens
		case hit == nil || b.Rate > hit.Rate:
			hit = b
		}
	}
	if hit == nil {
		return true
	}
	hit.packets++
	hit.bytes += uint64(bytes)
	return false
}

// meterMod executes a meter-mod (section 6.6). Each change fills the buckets and sets the counters of the meter to 0, as
// Open vSwitch does.
func (s *Switch) meterMod(m *openflow.MeterMod) *openflow.Error {
	invalid := func(code uint16) *openflow.Error { return refuse(openflow.ErrMeterModFailed, code) }
	switch m.Command {
	case openflow.MeterAdd, openflow.MeterModify:
	case openflow.MeterDelete:
		s.deleteMeters(m.Meter)
		return nil
	default:
		return invalid(openflow.MeterModBadCommand)
	}
	const units = openflow.MeterKbps | openflow.MeterPktps
	if f := m.Flags; f&units == 0 || f&units == units || f&^(units|openflow.MeterBurst|openflow.MeterStats) != 0 {
		return invalid(openflow.MeterModBadFlags)
	}
	if m.Meter == 0 || m.Meter > openflow.MeterMax && m.Meter != openflow.MeterController && m.Meter != openflow.MeterSlowPath {
		return invalid(openflow.MeterModInvalidMeter)
	}
	old := s.meters[m.Meter]
	switch {
	case m.Command == openflow.MeterAdd && old != nil:
		return invalid(openflow.MeterModMeterExists)
	case m.Command == openflow.MeterModify && old == nil:
		return invalid(openflow.MeterModUnknownMeter)
	case old == nil && len(s.meters) >= s.limits.Meters:
		return invalid(openflow.MeterModOutOfMeters)
	}
	bands, code, ok := s.newBands(m.Bands)
	if !ok {
		return invalid(code)
	}
	now := time.Now()
	if old == nil {
		old = &meter{id: m.Meter, created: now}
		s.meters[m.Meter] = old
		s.changes++
	}
	old.flags, old.bands, old.updated, old.counter = m.Flags, bands, now, counter{}
	return nil
}

// newBands are full buckets; code is the error if there is one.
func (s *Switch) newBands(all []openflow.Band) (bands []*band, code uint16, ok bool) {
	if len(all) == 0 || len(all) > s.limits.Bands {
		return nil, openflow.MeterModOutOfBands, false
	}
	for _, b := range all {
		d, drop := b.(openflow.DropBand)
		switch {
		case !drop:
			return nil, openflow.MeterModBadBand, false
		case d.Rate == 0:
			return nil, openflow.MeterModBadRate, false
		case d.Burst == 0: // a second, as Open vSwitch has it
			d.Burst = d.Rate
		}
		n := &band{BandLimit: d.BandLimit}
		n.tokens = n.size()
		bands = append(bands, n)
	}
	return bands, 0, true
}

// deleteMeters deletes a meter or all, and the flows that use them.
func (s *Switch) deleteMeters(id openflow.MeterID) {
	for _, m := range s.sortedMeters() {
		if m.id != id && id != openflow.MeterAll {
			continue
		}
		delete(s.meters, m.id)
		s.changes++
		var users []*flow
		for i := range s.tables {
			for _, f := range s.tables[i].all {
				if f.Program.Meter == m.id {
					users = append(users, f)
				}
			}
		}
		s.removeFlows(sorted(users), removedMeterDelete)
	}
}

func (s *Switch) sortedMeters() []*meter {
	all := make([]*meter, 0, len(s.meters))
	for _, m := range s.meters {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *meter) int { return cmp.Compare(a.id, b.id) })
	return all
}

func (m *meter) config() openflow.MeterConfig {
	c := openflow.MeterConfig{Flags: m.flags, Meter: m.id}
	for _, b := range m.bands {
		c.Bands = append(c.Bands, openflow.DropBand{BandLimit: b.BandLimit})
	}
	return c
}

// stats are the counters of a meter that some flows use, and its time until now, or until when streams are counted.
func (m *meter) stats(users uint32, counted time.Time) openflow.MeterCounters {
	c := openflow.MeterCounters{Meter: m.id, Flows: users, Packets: m.packets, Bytes: m.bytes, Duration: since(m.created)}
	if !counted.IsZero() {
		c.Duration = openflow.DurationOf(max(counted.Sub(m.created), 0))
	}
	for _, b := range m.bands {
		c.Bands = append(c.Bands, b.wire())
	}
	return c
}

// meterFeatures is what the limits allow.
func (s *Switch) meterFeatures() *openflow.MeterFeatures {
	f := &openflow.MeterFeatures{MaxMeters: uint32(s.limits.Meters)}
	if f.MaxMeters > 0 {
		f.BandTypes = 1 << openflow.BandTypeDrop
		f.Capabilities = uint32(openflow.MeterKbps | openflow.MeterPktps | openflow.MeterBurst | openflow.MeterStats)
		f.MaxBands = uint8(s.limits.Bands)
	}
	return f
}

// since is the time from a moment until now, as a message has it.
func since(t time.Time) openflow.Duration { return openflow.DurationOf(time.Since(t)) }
