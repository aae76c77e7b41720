package traffic

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"headgate/unit"
)

func schedules(t *rapid.T) []Step {
	var out []Step
	at := time.Duration(0)
	for range rapid.IntRange(0, 6).Draw(t, "steps") {
		at += time.Duration(rapid.IntRange(1, 5000).Draw(t, "after")) * time.Millisecond
		out = append(out, Step{at, unit.Rate(rapid.IntRange(0, 1000).Draw(t, "rate")) * unit.Mbit})
	}
	return out
}

// The integral of a schedule is what adding up the rate of each millisecond
// gives, whatever the pieces it is asked in.
func TestOfferedIsTheIntegral(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := Flow{Schedule: schedules(t)}
		to := int64(rapid.IntRange(0, 20_000).Draw(t, "to"))
		var sum float64
		for ms := range to {
			sum += float64(f.rateAt(ms*1e6)) / 1e3
		}
		cut := int64(rapid.IntRange(0, int(to)).Draw(t, "cut"))
		got := f.offered(0, cut*1e6) + f.offered(cut*1e6, to*1e6)
		if math.Abs(got-sum) > 1e-6*sum+1 {
			t.Fatalf("offered %f, want %f", got, sum)
		}
	})
}

// A pacer gives out what the schedule offers while the socket takes it, and never
// more than the backlog at once when it does not.
func TestPacer(t *testing.T) {
	f := Flow{Schedule: Constant(100 * unit.Mbit)}
	const frame = 1514 * 8
	var p pacer
	var taken float64
	for ms := range int64(1000) {
		p.update(&f, (ms+1)*1e6, frame)
		n := math.Floor(p.owed / frame)
		p.owed -= n * frame
		taken += n * frame
	}
	if math.Abs(taken-100e6) > frame {
		t.Errorf("took %.0f bits in a second at 100 Mbit/s", taken)
	}
	p.update(&f, 61e9, frame)
	if want := 100e6 * DefaultBacklog.Seconds(); p.owed != want {
		t.Errorf("after a minute of a stuck socket %.0f bits are owed, want %.0f", p.owed, want)
	}
}

func TestValidate(t *testing.T) {
	good := Flow{Name: "f", From: "a", To: "b", Protocol: TCP}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Flow){
		"needs a name":        func(f *Flow) { f.Name = "" },
		"not a protocol":      func(f *Flow) { f.Protocol = "sctp" },
		"begins and ends at":  func(f *Flow) { f.To = "a" },
		"not a DSCP":          func(f *Flow) { f.DSCP = 64 },
		"are for tcp":         func(f *Flow) { f.Protocol, f.Congestion = UDP, "bbr" },
		"payload is for udp":  func(f *Flow) { f.Payload = 100 },
		"is not between":      func(f *Flow) { f.Protocol, f.Payload = UDP, 3 },
		"is negative":         func(f *Flow) { f.Backlog = -1 },
		"times rise from 0":   func(f *Flow) { f.Schedule = []Step{{At: 1}, {At: 1}} },
		"is more than 10Tbit": func(f *Flow) { f.Schedule = Constant(unit.MaxRate + 1) },
	} {
		f := good
		change(&f)
		if err := f.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
}
