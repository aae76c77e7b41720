package lab

import (
	"math"
	"testing"
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/unit"
)

// logOf offers a link bursts of arrivals at 0.7 to 1.6 of its rate, and returns its log.
func logOf(t *testing.T, s link.Spec) []link.Result {
	t.Helper()
	if p := s.Problems(); len(p) > 0 {
		t.Fatal(p)
	}
	l := link.New(s, 1, 0)
	var log []link.Result
	take := func(now int64) {
		for r, ok := l.Take(now); ok; r, ok = l.Take(now) {
			log = append(log, r)
		}
	}
	now, sizes := int64(0), []int{1514, 1514, 1514, 60, 590}
	for i := range 20_000 {
		p := link.Packet{Size: sizes[i*7%5], ECN: uint8(i % 3), DSCP: uint8(i % 2 * 46)}
		load := 1.15 + 0.45*math.Sin(float64(i)/300)
		now += int64(float64(p.Size)*8e9/float64(s.Slowest())/load) * int64(i%2) * 2
		take(now)
		l.Offer(now, p)
	}
	take(now + 1e11)
	return log
}

// cases are one link of each kind, with the result of its definition for a log.
var definitions = map[string]struct {
	spec  link.Spec
	check func(link.Spec, []carried) verdict
}{
	"serialiser":        {link.Spec{Rate: 20 * unit.Mbit}, serialiser},
	"droptail/bytes":    {link.Spec{Rate: 20 * unit.Mbit, Queue: link.Amount{Bytes: 20_000}}, droptail},
	"droptail/segments": {link.Spec{Rate: 20 * unit.Mbit, Queue: link.Amount{Segments: 20}}, droptail},
	"droptail/time":     {link.Spec{Rate: 20 * unit.Mbit, Queue: link.Amount{Time: 10 * time.Millisecond}}, droptail},
	"mark":              {link.Spec{Rate: 20 * unit.Mbit, Mark: link.Amount{Bytes: 20_000}}, step},
	"red": {link.Spec{Rate: 20 * unit.Mbit, Queue: link.Amount{Bytes: 90_000}, RED: &link.RED{
		Profile: link.Profile{Min: link.Amount{Bytes: 10_000}, Max: link.Amount{Bytes: 40_000}, Probability: 0.1}, ECN: true,
		Classes: []link.REDClass{{DSCP: []uint8{46}, Profile: link.Profile{Min: link.Amount{Bytes: 40_000}, Max: link.Amount{Bytes: 80_000}, Probability: 0.1}}},
	}}, func(s link.Spec, p []carried) verdict {
		v, sigmas := early(s, p)
		if sigmas > 4 {
			v.wrong++
		}
		return v
	}},
	"bucket": {link.Spec{Rate: 100 * unit.Mbit, Bucket: &link.Bucket{Rate: 20 * unit.Mbit, Size: 50_000, Peak: 60 * unit.Mbit}}, fromZero(bucketed)},
	"decay":  {link.Spec{Rate: 100 * unit.Mbit, Bucket: &link.Bucket{Rate: 20 * unit.Mbit, Size: 50_000, Peak: 60 * unit.Mbit, PeakLow: 30 * unit.Mbit}}, fromZero(bucketed)},
	"gift":   {link.Spec{Rate: 100 * unit.Mbit, Bucket: &link.Bucket{Rate: 20 * unit.Mbit, Size: 50_000, Gift: 60_000, GiftEvery: time.Second}}, fromZero(bucketed)},
	"police": {link.Spec{Rate: 100 * unit.Mbit, Bucket: &link.Bucket{Rate: 20 * unit.Mbit, Size: 50_000, Police: true}}, fromZero(bucketed)},
	"xen":    {link.Spec{Rate: 100 * unit.Mbit, Xen: &link.Xen{Interval: 5 * time.Millisecond, Tokens: 12_500}}, fromZero(inIntervals)},
}

func fromZero(check func(link.Spec, int64, []carried) verdict) func(link.Spec, []carried) verdict {
	return func(s link.Spec, p []carried) verdict { return check(s, 0, p) }
}

// The model conforms to every definition, packet by packet.
func TestModelKeepsDefinitions(t *testing.T) {
	for name, d := range definitions {
		packets := prepare(d.spec, logOf(t, d.spec))
		if v := d.check(d.spec, packets); v.wrong > 0 || v.packets < 10_000 || v.acted < 100 {
			t.Errorf("%s: %d wrong packets: %v", name, v.wrong, v)
		}
	}
}

// The definitions detect a link with slightly different properties.
func TestDefinitionsFindFaults(t *testing.T) {
	for name, d := range definitions {
		other := d.spec
		switch name {
		case "serialiser":
			other.Rate = other.Rate * 1001 / 1000
		case "droptail/bytes":
			other.Queue.Bytes += 100
		case "droptail/segments":
			other.Queue.Segments++
		case "droptail/time":
			other.Queue.Time += 100 * time.Microsecond
		case "mark":
			other.Mark.Bytes += 2000
		case "red":
			r := *other.RED
			r.Probability, r.Classes = 0.2, nil
			other.RED = &r
		case "xen":
			other.Xen = &link.Xen{Interval: other.Xen.Interval, Tokens: other.Xen.Tokens + 100}
		default:
			b := *other.Bucket
			b.Rate = b.Rate * 101 / 100
			if name == "decay" {
				b.PeakLow = b.PeakLow * 101 / 100
			}
			other.Bucket = &b
		}
		if v := d.check(d.spec, prepare(d.spec, logOf(t, other))); v.wrong == 0 {
			t.Errorf("%s: the log of another link is accepted", name)
		}
	}
}

// A log in which RED had no queue to act on proves nothing.
func TestEarlyNeedsAQueue(t *testing.T) {
	s := definitions["red"].spec
	fast := s
	fast.Rate = unit.Gbit
	var log []link.Result
	for i := range 2000 {
		at := int64(i) * int64(time.Millisecond)
		log = append(log, link.Result{Packet: link.Packet{Size: 1514}, Number: uint64(i + 1), Arrived: at, Departed: at + transmission(fast.Rate, 1514), Fate: link.Delivered})
	}
	if v, _ := early(fast, prepare(fast, log)); v.wrong == 0 {
		t.Errorf("a log without a queue is accepted: %v", v)
	}
}

// For rare losses the formula is the well-known square root: 1/RTT * sqrt(3/(2bp)) segments a second.
func TestPFTK(t *testing.T) {
	const rtt = 50 * time.Millisecond
	for _, b := range []float64{1, 2} {
		const p = 1e-7
		want := math.Sqrt(3/(2*b*p)) / rtt.Seconds()
		if got := pftk(p, rtt, 250*time.Millisecond, b); math.Abs(got-want) > 0.01*want {
			t.Errorf("b %v: %.1f segments a second, want %.1f", b, got, want)
		}
	}
	// With p near one half there are mostly timeouts, with one segment in several of them.
	if got := pftk(0.5, rtt, time.Second, 1); got > 2 || got < 0.1 {
		t.Errorf("%.2f segments a second at a loss of a half", got)
	}
}
