package controller

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/controller/points"
	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/limiter"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/schedule"
	"headgate.dev/headgate/probe/tokenrate"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/unit"
)

// Two hosts at each of two switches, with a link of 100 Mbit/s between the switches: ports 1 and 2 are of hosts, and port 3 of the link.
func weakNetwork(t *testing.T) (weakLinks, fabric.LinkID) {
	t.Helper()
	link := fabric.LinkID{From: fabric.PortID{Switch: 1, Port: 3}, To: fabric.PortID{Switch: 2, Port: 3}}
	var p fabric.Parts
	for id := fabric.DPID(1); id <= 2; id++ {
		p.Switches = append(p.Switches, fabric.Switch{ID: id, Ports: []fabric.Port{{No: 1, Speed: unit.Gbit}, {No: 2, Speed: unit.Gbit}, {No: 3, Speed: unit.Gbit}}})
	}
	for _, l := range []fabric.LinkID{link, link.Reverse()} {
		p.Links = append(p.Links, fabric.Link{LinkID: l, Capacity: 100 * unit.Mbit, Cost: 1})
	}
	top, err := fabric.New(p)
	if err != nil {
		t.Fatal(err)
	}
	hosts := map[fabric.PortID]points.Interface{}
	for i, name := range []string{"a1", "a2", "b1", "b2"} {
		hosts[fabric.PortID{Switch: fabric.DPID(1 + i/2), Port: fabric.PortNo(1 + i%2)}] = points.Interface{Host: name, Dev: "eth0"}
	}
	return weakLinks{top: top, hosts: hosts}, link
}

// TestWeakLinks: what measurements between hosts show of the link between them.
func TestWeakLinks(t *testing.T) {
	w, link := weakNetwork(t)
	at := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	exact := func(mbit float64) probe.Estimate { return probe.Estimate{Value: mbit * 1e6} }
	answered := func(from, to string, a path.Answer) store.ProbeResult {
		answer, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		return store.ProbeResult{Task: schedule.Task{From: from, To: to, Measure: "path"}, At: at, Answer: answer, FromDevices: []string{"eth0"}, ToDevices: []string{"eth0"}}
	}
	result := func(from, to string, capacity, tokens probe.Estimate) store.ProbeResult {
		return answered(from, to, path.Answer{Capacity: &capacity, TokenRate: &tokenrate.Result{Rate: tokens}})
	}
	none := probe.NoEstimate("none")
	bound := func(from, to string, mbit float64, class limiter.Class) store.ProbeResult {
		return answered(from, to, path.Answer{TokenRate: &tokenrate.Result{Rate: probe.Estimate{Value: mbit * 1e6, AtLeast: true}}, Limiter: &limiter.Result{Class: class, Bucket: &limiter.Bucket{}}})
	}
	carried := func(from, to string, mbit float64) store.ProbeResult {
		return answered(from, to, path.Answer{TokenRate: &tokenrate.Result{Rate: probe.Estimate{Value: mbit * 1e6, AtLeast: true, Because: "it was not confirmed"}}, Limiter: &limiter.Result{Class: limiter.TBF, Bucket: &limiter.Bucket{}}})
	}
	policed := func(from, to string, mbit float64) store.ProbeResult {
		return answered(from, to, path.Answer{TokenRate: &tokenrate.Result{Rate: probe.Estimate{Value: mbit * 1e6, Low: mbit * 0.99e6, High: mbit * 1.3e6}, Policed: true}, Limiter: &limiter.Result{Class: limiter.Policer, Bucket: &limiter.Bucket{}}})
	}
	joint := func(from, to string, mbit float64, bytes unit.Bytes) store.ProbeResult {
		return answered(from, to, path.Answer{TokenRate: &tokenrate.Result{Rate: none, Joint: &tokenrate.Joint{Rate: mbit * 1e6, Bytes: bytes, Took: float64(bytes) * 8 / mbit / 1e6}}})
	}
	lines := []store.ProbeResult{result("a1", "a2", exact(1000), exact(1000)), result("b2", "b1", exact(1000), exact(1000))} // so that the lines of a1 and b1 are known
	all := append(slices.Clone(lines), result("a2", "a1", exact(1000), exact(1000)), result("b1", "b2", exact(1000), exact(1000)))
	limited := result("a1", "b1", exact(100), exact(60))
	grouped := limited
	grouped.OwnLimit = 60 * unit.Mbit
	elsewhere := limited
	elsewhere.FromDevices = []string{"eth1"}
	known := store.WeakLink{Links: []store.ReservationLink{store.LinkOf(link)}, Rate: 60 * unit.Mbit, Capacity: 100 * unit.Mbit, From: "a1", To: "b1", At: at}
	earlier := known
	earlier.At = at.Add(-time.Hour)
	for _, c := range []struct {
		name    string
		results []store.ProbeResult
		before  []store.WeakLink
		busy    bool
		others  unit.Rate // that the switches have counted, 0 if they have not
		want    string    // the rate and the number of links of each finding
	}{
		{name: "nothing"},
		{name: "a limiter", results: append(slices.Clone(lines), limited), want: "60Mbit 1"},
		{name: "four digits", results: append(slices.Clone(lines), result("a1", "b1", exact(100), exact(59.98765))), want: "59.98Mbit 1"},
		{name: "a slow link", results: append(slices.Clone(lines), result("a1", "b1", exact(70), probe.Estimate{Value: 69e6, AtLeast: true})), want: "70Mbit 1"},
		{name: "as it should be", results: append(slices.Clone(lines), result("a1", "b1", exact(100), probe.Estimate{Value: 97e6, AtLeast: true}))},
		{name: "the lines are not known", results: []store.ProbeResult{limited}, want: "60Mbit 3"},
		{name: "the line of a host is slow", results: []store.ProbeResult{result("a1", "a2", exact(100), exact(100))}},
		{name: "no token rate", results: append(slices.Clone(lines), result("a1", "b1", exact(60), none))},
		{name: "at least", results: append(slices.Clone(lines), result("a1", "b1", exact(100), probe.Estimate{Value: 60e6, AtLeast: true}))},
		{name: "one bound", results: append(slices.Clone(lines), bound("a1", "b1", 29, limiter.TBF))},
		{name: "one bound, and no other traffic", results: append(slices.Clone(lines), bound("a1", "b1", 29, limiter.Scheduling)), others: unit.Kbit, want: "29Mbit 1"},
		{name: "one bound beside other traffic", results: append(slices.Clone(lines), bound("a1", "b1", 29, limiter.Scheduling)), others: 2 * unit.Mbit},
		{name: "no limit was found up to the rate, without other traffic", results: append(slices.Clone(lines), joint("a1", "b1", 60, 2_000_000)), others: unit.Kbit},
		{name: "a policer, seen once", results: append(slices.Clone(lines), policed("a1", "b1", 30)), others: unit.Kbit},
		{name: "a policer, seen twice", results: append(slices.Clone(lines), policed("a1", "b1", 30), policed("a2", "b2", 30.1)), want: "29.7Mbit 1"},
		{name: "two policers that do not agree", results: append(slices.Clone(lines), policed("a1", "b1", 30), policed("a2", "b2", 35))},
		{name: "two bounds that agree", results: append(slices.Clone(lines), bound("a1", "b1", 29, limiter.TBF), bound("a2", "b2", 29.2, limiter.TBF)), want: "29Mbit 1"},
		{name: "two bounds of trains for some bytes", results: append(slices.Clone(lines), carried("a1", "b1", 29), carried("a2", "b2", 29.2))},
		{name: "two bounds that do not agree", results: append(slices.Clone(lines), bound("a1", "b1", 29, limiter.TBF), bound("a2", "b2", 24, limiter.TBF))},
		{name: "two bounds, and a limiter once", results: append(slices.Clone(lines), bound("a1", "b1", 29, limiter.None), bound("a2", "b2", 29.2, limiter.TBF)), want: "29Mbit 1"},
		{name: "two bounds that hardly agree, and a limiter once", results: append(slices.Clone(lines), bound("a1", "b1", 29, limiter.None), bound("a2", "b2", 29.4, limiter.TBF))},
		{name: "two bounds without a limiter", results: append(slices.Clone(lines), bound("a1", "b1", 29, limiter.None), bound("a2", "b2", 29, limiter.None))},
		{name: "the limit of a group", results: append(slices.Clone(lines), grouped)},
		{name: "another device", results: append(slices.Clone(lines), elsewhere)},
		{name: "something was reserved", results: append(slices.Clone(lines), limited), busy: true},
		{name: "it stays while nothing counts", results: append(slices.Clone(lines), limited), before: []store.WeakLink{known}, busy: true, want: "60Mbit 1"},
		{name: "a capacity and a token rate that are not certain", results: append(slices.Clone(lines), result("a1", "b1", probe.Estimate{Value: 17e6, Low: 17e6, High: 1140e6}, probe.Estimate{Value: 45e6, Low: 36e6, High: 55e6}))},
		// What the bench measured over a shaper of 30 Mbit/s on a busy machine: one of four showed more.
		{name: "one shows too much", results: append(slices.Clone(all), bound("a1", "b1", 29.02, limiter.TBF), bound("a1", "b2", 33, limiter.Scheduling), bound("a2", "b1", 29.02, limiter.TBF), bound("a2", "b2", 29.02, limiter.TBF)), want: "29.02Mbit 1"},
		{name: "two of four saw no limit, in short trains", results: append(slices.Clone(all), result("a1", "b1", exact(200), exact(59)), result("a1", "b2", exact(200), exact(61)), joint("a2", "b1", 95, 1_200_000), joint("a2", "b2", 95, 1_200_000)), want: "59Mbit 1"},
		{name: "two of four saw no limit, in long trains", results: append(slices.Clone(all), result("a1", "b1", exact(200), exact(59)), result("a1", "b2", exact(200), exact(61)), joint("a2", "b1", 95, 8_000_000), joint("a2", "b2", 95, 8_000_000))},
		{name: "two of four show too much", results: append(slices.Clone(all), bound("a1", "b1", 29.02, limiter.TBF), bound("a1", "b2", 33, limiter.Scheduling), bound("a2", "b1", 44, limiter.Scheduling), bound("a2", "b2", 29.02, limiter.TBF)), want: "29.02Mbit 1"},
		{name: "two of four show the same, which is more", results: append(slices.Clone(all), bound("a1", "b1", 29.02, limiter.TBF), bound("a1", "b2", 44, limiter.TBF), bound("a2", "b1", 44, limiter.TBF), bound("a2", "b2", 29.02, limiter.TBF)), want: "44Mbit 1"},
		{name: "more than the port", results: append(slices.Clone(all), limited, result("a2", "b1", exact(1400), exact(1400))), want: "60Mbit 1"},
		{name: "nothing of the lines", results: []store.ProbeResult{result("a1", "b1", exact(100), exact(30)), result("a1", "b2", exact(100), exact(30)), result("a2", "b1", exact(100), exact(30)), result("a2", "b2", exact(100), exact(30))}, want: "30Mbit 5 likely"},
		{name: "the lines of one end", results: []store.ProbeResult{result("a1", "a2", exact(1000), exact(1000)), result("a2", "a1", exact(1000), exact(1000)), result("a1", "b1", exact(100), exact(30)), result("a1", "b2", exact(100), exact(30)), result("a2", "b1", exact(100), exact(30)), result("a2", "b2", exact(100), exact(30))}, want: "30Mbit 3 likely"},
		{name: "two pairs at one host", results: []store.ProbeResult{result("a1", "b1", exact(100), exact(30)), result("a1", "b2", exact(100), exact(30))}, want: "30Mbit 3, 30Mbit 3"},
		{name: "all hosts have the same limit", results: []store.ProbeResult{result("a1", "a2", exact(1000), exact(30)), result("b1", "b2", exact(1000), exact(30)), result("a1", "b1", exact(100), exact(30)), result("a2", "b2", exact(100), exact(30)), result("a1", "b2", exact(100), exact(30)), result("a2", "b1", exact(100), exact(30))}, want: "30Mbit 3, 30Mbit 3, 30Mbit 3, 30Mbit 3"},
		{name: "it is repaired", results: append(slices.Clone(lines), result("a1", "b1", exact(100), exact(100))), before: []store.WeakLink{earlier}},
		{name: "a longer list", results: []store.ProbeResult{limited}, before: []store.WeakLink{known}, want: "60Mbit 1"},
		{name: "nothing later shows more", results: append(slices.Clone(lines), result("a1", "b1", exact(100), exact(100))), before: []store.WeakLink{known}, want: "60Mbit 1"},
	} {
		w.beside = func(store.ProbeResult, []fabric.LinkID) beside {
			return beside{reserved: c.busy, others: c.others, counted: c.others > 0}
		}
		results := map[schedule.Task]store.ProbeResult{}
		for _, r := range c.results {
			results[r.Task] = r
		}
		var got []string
		for _, f := range w.find(results, c.before) {
			text := f.Rate.String() + " " + string(rune('0'+len(f.Links)))
			if f.Likely != nil {
				if text += " likely"; f.Likely.ID() != link || f.Capacity != 100*unit.Mbit {
					t.Errorf("%s: %v is likely, with a capacity of %v", c.name, f.Likely.ID(), f.Capacity)
				}
			}
			got = append(got, text)
			if len(f.Links) == 1 && f.Links[0].ID() != link {
				t.Errorf("%s: found %v", c.name, f.Links[0].ID())
			}
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestLooked: the results are read again when a measurement has ended, or when links or hosts are others.
func TestLooked(t *testing.T) {
	w, link := weakNetwork(t)
	task, now := schedule.Task{From: "a1", To: "b1", Measure: "path"}, time.Now()
	last := map[schedule.Task]schedule.Last{task: {At: now}}
	if (looked{}).same(w, map[schedule.Task]schedule.Last{}) {
		t.Error("nothing was looked at yet")
	}
	l := looked{w.top.Links(), w.hosts, last}
	if !l.same(w, map[schedule.Task]schedule.Last{task: {At: now}}) {
		t.Error("nothing has changed")
	}
	if l.same(w, map[schedule.Task]schedule.Last{task: {At: now.Add(time.Second)}}) {
		t.Error("a measurement has ended")
	}
	fewer := w
	fewer.hosts = map[fabric.PortID]points.Interface{{Switch: 1, Port: 1}: {Host: "a1", Dev: "eth0"}}
	if l.same(fewer, last) {
		t.Error("hosts have gone")
	}
	other, err := fabric.New(fabric.Parts{Switches: w.top.Switches(), Links: []fabric.Link{{LinkID: link, Capacity: 50 * unit.Mbit, Cost: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	if l.same(weakLinks{top: other, hosts: w.hosts}, last) {
		t.Error("a capacity has changed")
	}
}

// TestApplyMeasured: what was measured is in force as far as the operator lets it, and the fault says what to write where it is not.
func TestApplyMeasured(t *testing.T) {
	w, link := weakNetwork(t)
	found := store.WeakLink{Links: []store.ReservationLink{store.LinkOf(link)}, Rate: 60 * unit.Mbit, Capacity: 100 * unit.Mbit, From: "a1", To: "b1"}
	for part, text := range map[uint16]string{0: "write capacity: 60Mbit for the link, or apply_measured: 54%", 50: "the measured capacity is in force", 60: "is in force", 61: "less than apply_measured: 61% lets be in force"} {
		c := contents{network: &fabric.Config{ApplyMeasured: part}, weak: []store.WeakLink{found}}
		want := unit.Rate(0)
		if part == 50 || part == 60 {
			want = found.Rate
		}
		if got := c.configured().Measured[link]; got != want || c.network.Measured != nil {
			t.Errorf("with %d %% the link has %v, and the configuration has %v", part, got, c.network.Measured)
		}
		if got := weakText(w.top, c.network, found); !strings.Contains(got, text) {
			t.Errorf("with %d %%: %q has no %q", part, got, text)
		}
	}
	several := found
	several.Links = append(several.Links, store.LinkOf(link.Reverse()))
	likely := several.Links[0]
	several.Likely = &likely
	if got := weakText(w.top, &fabric.Config{ApplyMeasured: 1}, several); !strings.Contains(got, "probably gives 60Mbit") || strings.Contains(got, "in force") {
		t.Errorf("of a likely link: %q", got)
	}
	c := contents{network: &fabric.Config{ApplyMeasured: 1}, weak: []store.WeakLink{several}}
	if got := c.configured().Measured; len(got) > 0 {
		t.Errorf("%v is in force, and which link is weak is not known", got)
	}
	if (&contents{}).configured() != nil {
		t.Error("a network without a configuration has one")
	}
}

// TestOthersTraffic: what the ports of a path have counted beside a measurement.
func TestOthersTraffic(t *testing.T) {
	begin := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	from, out, in, to := fabric.PortID{Switch: 1, Port: 1}, fabric.PortID{Switch: 1, Port: 9}, fabric.PortID{Switch: 2, Port: 9}, fabric.PortID{Switch: 2, Port: 1}
	path := []fabric.LinkID{reserve.Uplink(from), {From: out, To: in}, reserve.Downlink(to)}
	answer, err := json.Marshal(map[string]any{"bytes": "1000kB", "seconds": 1})
	if err != nil {
		t.Fatal(err)
	}
	r := store.ProbeResult{At: begin.Add(5 * time.Second), Answer: answer} // from second 3 to 6, which is 2.67 Mbit/s by itself
	for name, c := range map[string]struct {
		passed map[fabric.PortID]float64 // bytes in each second
		unread fabric.PortID
		want   unit.Rate
		ok     bool
	}{
		"nothing else":         {map[fabric.PortID]float64{from: 1e6 / 3, out: 1e6 / 3, to: 1e6 / 3}, fabric.PortID{}, 0, true},
		"lost on the way":      {map[fabric.PortID]float64{from: 1e6 / 3, out: 1e6 / 3, to: 1e5}, fabric.PortID{}, 0, true},
		"other traffic":        {map[fabric.PortID]float64{from: 1e6 / 3, out: 1e6/3 + 125_000, to: 1e6/3 + 50_000}, fabric.PortID{}, unit.Mbit, true},
		"a port was not read":  {map[fabric.PortID]float64{from: 1e6 / 3, out: 1e6 / 3, to: 1e6 / 3}, to, 0, false},
		"more than the host's": {map[fabric.PortID]float64{from: 1e6, out: 1e6 / 3, to: 1e6 / 3}, fabric.PortID{}, unit.Rate(5_333_333), true},
	} {
		readings := func(id fabric.PortID) fabric.Readings {
			var m fabric.PortMeter
			for s := range 9 {
				bytes := uint64(float64(s) * c.passed[id])
				now := fabric.PortCounters{At: begin.Add(time.Duration(s) * time.Second), Tx: fabric.Counts{Bytes: bytes}}
				if id == from {
					now.Rx, now.Tx = now.Tx, now.Rx
				}
				if id != c.unread {
					m.Take(now)
				}
			}
			return m.Readings()
		}
		got, ok := othersTraffic(r, path, readings)
		if ok != c.ok || ok && (got > c.want+100 || c.want > got+100) {
			t.Errorf("%s: %v, %v, want %v", name, got, ok, c.want)
		}
	}
}
