package fabric

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// reading is a reading of a port that has sent and received as many bytes, and counts nothing else.
func reading(ms int, age time.Duration, rx, tx uint64) PortCounters {
	return PortCounters{At: at(ms), Age: age, Rx: Counts{rx, Uncounted, Uncounted, Uncounted}, Tx: Counts{tx, Uncounted, Uncounted, Uncounted}}
}

// Which two readings have a rate.
func TestPortMeter(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		was, now PortCounters
		rx, tx   float64 // bit/s, -1 if it is not known
	}{
		"a second":                           {reading(0, 0, 0, 500), reading(1000, 0, 1000, 4_125_500), 8000, 33e6},
		"a reply that was late":              {reading(0, 1500*ms, 0, 0), reading(1400, 2501*ms, 1001, 0), 8000, 0},
		"a clock of whole seconds":           {reading(0, 3*time.Second, 0, 0), reading(1400, 5*time.Second, 1750, 0), 10_000, 0},
		"a clock that stands":                {reading(0, 3500*ms, 0, 0), reading(1000, 3500*ms, 1000, 0), 8000, 0},
		"a clock that runs three times fast": {reading(0, 3500*ms, 0, 0), reading(1000, 6500*ms, 1000, 0), 8000, 0},
		"an unknown age":                     {reading(0, 3500*ms, 0, 0), reading(1000, 0, 1000, 0), 8000, 0},
		"out of order":                       {reading(1000, 0, 0, 0), reading(900, 0, 1000, 0), -1, -1},
		"the same time":                      {reading(1000, 0, 0, 0), reading(1000, 0, 1000, 0), -1, -1},
		"the port was added again":           {reading(0, 9500*ms, 100, 100), reading(1000, 500*ms, 200, 200), -1, -1},
		"counters began again":               {reading(0, 0, 100, 100), reading(1000, 0, 200, 99), -1, -1},
		"sent bytes are not counted":         {reading(0, 0, 0, Uncounted), reading(1000, 0, 1000, Uncounted), 8000, -1},
		"they are counted from now on":       {reading(0, 0, 0, Uncounted), reading(1000, 0, 1000, 100), 8000, -1},
		"they are no longer counted":         {reading(0, 0, 0, 100), reading(1000, 0, 1000, Uncounted), 8000, -1},
		"nearly the last number":             {reading(0, 0, 0, Uncounted-2000), reading(1000, 0, 0, Uncounted-1000), 0, 8000},
	} {
		var m PortMeter
		if m.Take(c.was) {
			t.Errorf("%s: there is traffic after one reading", name)
		}
		took := m.Take(c.now)
		got := m.Traffic()
		for direction, of := range map[string][2]float64{"rx": {got.Rx.Rate, c.rx}, "tx": {got.Tx.Rate, c.tx}} {
			if rate, want := of[0], of[1]; want < 0 && !math.IsNaN(rate) || want >= 0 && !near(rate, want) {
				t.Errorf("%s: %s is %v bit/s, want %v", name, direction, rate, want)
			}
		}
		if !math.IsNaN(got.Rx.Drops) || !math.IsNaN(got.Tx.Errors) {
			t.Errorf("%s: drops and errors that are not counted are %v and %v", name, got.Rx.Drops, got.Tx.Errors)
		}
		if took != (c.rx >= 0) {
			t.Errorf("%s: there is new traffic: %v", name, took)
		}
	}
}

// After counters began again, the next reading has a rate.
func TestPortMeterRestart(t *testing.T) {
	var m PortMeter
	m.Take(reading(0, 0, 5000, 5000))
	m.Take(reading(1000, 0, 0, 0))
	m.Take(reading(900, 0, 9000, 9000)) // a reply that was overtaken
	m.Take(reading(2000, 0, 1000, 2000))
	if got := m.Traffic(); got.Rx.Rate != 8000 || got.Tx.Rate != 16000 || m.Last().Tx.Bytes != 2000 {
		t.Errorf("the traffic is %+v, and the last reading %+v", got, m.Last())
	}
}

// A link loses frames at both ends, and one end may not count them.
func TestLinkTraffic(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct{ sends, receives, want Traffic }{
		{Traffic{8, 1, 2}, Traffic{7, 4, 8}, Traffic{8, 5, 10}},
		{Traffic{8, nan, 2}, Traffic{7, 4, nan}, Traffic{8, 4, 2}},
		{Traffic{8, nan, nan}, Unmeasured(), Traffic{8, nan, nan}},
		{Unmeasured(), Traffic{7, 4, nan}, Traffic{nan, 4, nan}},
	} {
		if got := LinkTraffic(c.sends, c.receives); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("of %v and %v: %v, want %v", c.sends, c.receives, got, c.want)
		}
	}
}

// The rates times their intervals are all that was counted, whatever the intervals and the order of replies, and no rate is negative.
func TestPortMeterSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m PortMeter
		now, bytes, last := 0, rapid.Uint64Range(0, 1<<40).Draw(t, "first"), time.Time{}
		first, counted, sum := bytes, uint64(0), 0.0
		m.Take(reading(0, 0, 0, bytes))
		last = at(0)
		for range rapid.IntRange(1, 50).Draw(t, "readings") {
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0: // a reply that was overtaken
				m.Take(reading(now-rapid.IntRange(0, 500).Draw(t, "late"), 0, 0, rapid.Uint64Range(0, bytes).Draw(t, "old")))
				continue
			case 1: // the switch was restarted
				if bytes == 0 {
					continue // no difference can be seen
				}
				counted += bytes - first
				now += rapid.IntRange(1, 5000).Draw(t, "ms")
				first = rapid.Uint64Range(0, bytes-1).Draw(t, "again")
				bytes, last = first, at(now)
				if m.Take(reading(now, 0, 0, bytes)) {
					t.Fatalf("there is traffic over a restart: %v", m.Traffic())
				}
				continue
			}
			now += rapid.IntRange(1, 5000).Draw(t, "ms")
			bytes += rapid.Uint64Range(0, 1<<33).Draw(t, "bytes")
			if !m.Take(reading(now, 0, 0, bytes)) {
				t.Fatal("there is no traffic after two readings")
			}
			rate := m.Traffic().Tx.Rate
			if rate < 0 {
				t.Fatalf("the rate is %v", rate)
			}
			sum += rate / 8 * at(now).Sub(last).Seconds()
			last = at(now)
		}
		counted += bytes - first
		if math.Abs(sum-float64(counted)) > 1e-6*float64(counted)+1 {
			t.Fatalf("the rates are of %v bytes, and %d were counted", sum, counted)
		}
	})
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6 }
