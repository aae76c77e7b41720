package cycle

import (
	"math"
	"testing"
	"time"

	"headgate.dev/headgate/share"
	"headgate.dev/headgate/unit"
	"headgate.dev/headgate/usage"
)

// TestUnmet: the seconds in which a flow offered its reservation and got less than 99 % of it.
func TestUnmet(t *testing.T) {
	const second = 1_000_000 / 8 // bytes, at 1 Mbit/s
	for _, c := range []struct {
		name               string
		offered, delivered uint64
		want               bool
	}{
		{"all", second, second, false},
		{"99 %", second, second * 99 / 100, false},
		{"less", second, second*99/100 - 1, true},
		{"offers less", second - 1, second / 2, false},
		{"more is offered", 5 * second, second / 2, true},
		{"nothing", 0, 0, false},
	} {
		if got := unmet(measured{time.Second, c.offered, c.delivered}, unit.Mbit); got != c.want {
			t.Errorf("%s: unmet is %v", c.name, got)
		}
	}
	if unmet(measured{time.Second, second, 0}, 0) {
		t.Error("best effort has no reservation that is unmet")
	}
}

// TestMinutes: a minute of a flow that uses half of what it holds, beside best effort that borrows all.
func TestMinutes(t *testing.T) {
	n, qos, be := pair(t)
	p := newPlant(t, &share.StaticMeters{})
	p.set(n)
	var got []Minute
	for range 61 {
		p.run(time.Second, map[FlowID]unit.Rate{qos: 20 * unit.Mbit, be: 80 * unit.Mbit})
		got = append(got, p.all.Minutes...)
	}
	// The first reading has no interval, and the meter of best effort is 60/18 Mbit/s: 18 ports divide what is left.
	limit := p.limits[be].Rate
	byFlow := map[FlowID]Minute{}
	for _, m := range got {
		if _, twice := byFlow[m.Flow]; twice || m.Minute != noon.Unix()/60 {
			t.Errorf("%+v is of another minute, or a second one", m)
		}
		byFlow[m.Flow] = m
	}
	seconds := uint64(58) // from the second reading to the last of the minute
	want := usage.Usage{Seconds: float64(seconds), Offered: seconds * 2_500_000, Delivered: seconds * 2_500_000, Guaranteed: seconds * 5_000_000}
	m := byFlow[qos]
	part := float64(limit) / 80e6 // of 20 Mbit/s of the reservation, and 60 that nobody reserved
	if lent := float64(seconds) * 2_500_000 * part; math.Abs(float64(m.Lent)-lent) > lent/100 {
		t.Errorf("lent %d bytes, want %.0f", m.Lent, lent)
	}
	m.Lent = 0
	if m.Usage != want || m.Peak != 20*unit.Mbit || m.Missing != 0 {
		t.Errorf("the flow's minute is %+v, want %+v", m, want)
	}
	if m := byFlow[be]; m.Guaranteed != 0 || m.Borrowed != m.Delivered || m.Delivered == 0 || m.Unmet != 0 {
		t.Errorf("best effort's minute is %+v", m)
	}
	if rest := p.cycle.Minutes(); len(rest) == 0 || rest[0].Minute != noon.Unix()/60+1 {
		t.Errorf("the minute that has begun is %+v", rest)
	}
}

// TestIdle: since when a reservation uses less than it holds.
func TestIdle(t *testing.T) {
	n, qos, be := pair(t)
	p := newPlant(t, share.NewAdaptive(share.DefaultQuantum))
	p.set(n)
	for second := range 30 {
		rate := 30 * unit.Mbit
		if second >= 10 && second < 15 {
			rate = 40 * unit.Mbit
		}
		p.run(time.Second, map[FlowID]unit.Rate{qos: rate, be: 200 * unit.Mbit})
		want := noon
		if second >= 10 {
			want = noon.Add(time.Duration(min(second, 14)+1) * time.Second)
		}
		if since, ok := p.status(qos).Idle(); !ok || !since.Equal(want) {
			t.Fatalf("second %d: unused since %v, want %v", second, since, want)
		}
	}
	if _, ok := p.status(be).Idle(); ok {
		t.Error("best effort holds nothing")
	}
}

// TestSeizures counts from limits of 1 Mbit/s of a reservation of 10.
func TestSeizures(t *testing.T) {
	for _, c := range []struct {
		name   string
		limits []unit.Rate // Mbit/s
		want   Seizures
	}{
		{"none", []unit.Rate{10, 10, 10}, Seizures{}},
		{"a loan ends", []unit.Rate{20, 10, 20}, Seizures{}},
		{"seized", []unit.Rate{10, 5, 5, 5, 5, 10}, Seizures{1, 0}},
		{"returned in the third cycle", []unit.Rate{10, 5, 5, 5, 10}, Seizures{1, 1}},
		{"less than half returned", []unit.Rate{10, 5, 7, 7}, Seizures{1, 0}},
		{"with a loan", []unit.Rate{20, 5, 20}, Seizures{1, 1}},
		{"twice", []unit.Rate{10, 5, 10, 5, 10}, Seizures{2, 2}},
		{"in steps", []unit.Rate{10, 8, 6, 4, 4, 4, 4, 10}, Seizures{3, 0}},
	} {
		var s seizer
		for _, l := range c.limits {
			s.take(l*unit.Mbit, 10*unit.Mbit)
		}
		if s.Seizures != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, s.Seizures, c.want)
		}
	}
}

// TestFalseSeizures: the paper's algorithm hands back what it seizes from a noisy flow, and the scheme of the product
// seizes hardly anything.
func TestFalseSeizures(t *testing.T) {
	count := map[string]uint64{}
	for _, name := range []string{"thesis", DefaultScheme} {
		scheme, err := SchemeNamed(name, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		n, qos, be := pair(t)
		p := newPlant(t, scheme)
		p.set(n)
		noise := uint64(1)
		for range 600 {
			noise = noise*6364136223846793005 + 1442695040888963407
			p.run(time.Second, map[FlowID]unit.Rate{qos: 36*unit.Mbit + unit.Rate(noise>>40)%(4*unit.Mbit), be: 200 * unit.Mbit})
		}
		count[name] = p.status(qos).False
	}
	if count["thesis"] < 50 || count[DefaultScheme] > 1 {
		t.Errorf("false seizures in ten minutes: %v", count)
	}
	if _, err := SchemeNamed("best", time.Second); err == nil {
		t.Error("there is no such scheme")
	}
}
