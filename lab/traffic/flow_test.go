package traffic

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"headgate.dev/headgate/unit"
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

// rateAt is the oracle: it looks through all steps.
func rateAt(s []Step, at time.Duration) (r unit.Rate) {
	for _, st := range s {
		if st.At <= at {
			r = st.Rate
		}
	}
	return r
}

// The integral of a schedule is the sum of the rates of all milliseconds, for any pieces in which it
// is computed, and any start and stop.
func TestOfferedIsTheIntegral(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := func(from, to int, name string) time.Duration {
			return time.Duration(rapid.IntRange(from, to).Draw(t, name)) * time.Millisecond
		}
		f := Flow{Schedule: schedules(t), Start: ms(0, 3000, "start")}
		if rapid.Bool().Draw(t, "stops") {
			f.Stop = f.Start + ms(1, 20_000, "stop")
		}
		to := rapid.IntRange(0, 20_000).Draw(t, "to")
		var sum float64
		for i := range to {
			at := time.Duration(i) * time.Millisecond
			if at >= f.Start && (f.Stop == 0 || at < f.Stop) {
				sum += float64(rateAt(f.Schedule, at-f.Start)) / 1e3
			}
		}
		source := f.source(1, 0)
		cut := int64(rapid.IntRange(0, to).Draw(t, "cut"))
		got := source.advance(cut*1e6, 0) + source.advance(int64(to)*1e6, 0)
		if math.Abs(got-sum) > 1e-6*sum+1 {
			t.Fatalf("offered %f, want %f", got, sum)
		}
		want := unit.Rate(0)
		if at := time.Duration(to) * time.Millisecond; at >= f.Start && (f.Stop == 0 || at < f.Stop) {
			want = rateAt(f.Schedule, at-f.Start)
		}
		if source.rate() != want {
			t.Fatalf("the rate at %d ms is %v, want %v", to, source.rate(), want)
		}
	})
}

// A source has the bits at the time that due returns, and not a microsecond earlier, unless a step
// comes between.
func TestDueIsWhenItIsOffered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		source := (&Flow{Schedule: schedules(t)}).source(1, 0)
		now := int64(rapid.IntRange(0, 5000).Draw(t, "now")) * 1e6
		source.advance(now, 0)
		bits := rapid.Float64Range(1, 1e8).Draw(t, "bits")
		for got := 0.0; ; {
			due := source.due(bits-got, 0)
			if due == never {
				return
			}
			if before := max(due-1000, now); before > now {
				if got += source.advance(before, 0); got >= bits {
					t.Fatalf("%f of %f bits were offered 1 us before %d", got, bits, due)
				}
			}
			if got += source.advance(due, 0); got >= bits*(1-1e-9) {
				return
			}
			now = due // a step
		}
	})
}

// A pacer sends what the schedule offers while the socket accepts it. Afterwards it sends at most the
// backlog at once.
func TestPacer(t *testing.T) {
	f := Flow{Schedule: Constant(100 * unit.Mbit)}
	const frame = 1514 * 8
	p := pacer{source: f.source(1, 0), frameBits: frame, backlog: DefaultBacklog}
	var taken float64
	for ms := range int64(1000) {
		p.update((ms + 1) * 1e6)
		n := math.Floor(p.owed / frame)
		p.owed -= n * frame
		taken += n * frame
	}
	if math.Abs(taken-100e6) > frame {
		t.Errorf("took %.0f bits in a second at 100 Mbit/s", taken)
	}
	p.update(61e9)
	if want := 100e6 * DefaultBacklog.Seconds(); p.owed != want {
		t.Errorf("after a minute of a blocked socket %.0f bits are owed, want %.0f", p.owed, want)
	}
}

// A slow flow is woken when it has a frame to send, not every tick.
func TestPacerSleeps(t *testing.T) {
	f := Flow{Schedule: Constant(unit.Mbit)}
	const frame = 1514 * 8 // 12.112 ms of 1 Mbit/s
	p := pacer{source: f.source(1, 0), frameBits: frame, backlog: DefaultBacklog}
	looks, sent := 0, 0
	for now := int64(0); now < 10e9; now = p.due(now, frame) {
		looks++
		for p.update(now); p.owed >= frame; sent++ {
			p.owed -= frame
		}
	}
	if sent < 824 || looks > sent+2 {
		t.Errorf("%d frames in 10 s took %d wake-ups, want 825", sent, looks)
	}
}

func TestValidate(t *testing.T) {
	good := Flow{Name: "f", From: "a", To: "b", Protocol: TCP}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Flow){
		"needs a name":                                       func(f *Flow) { f.Name = "" },
		`"f": proto: "sctp" is not a protocol`:               func(f *Flow) { f.Protocol = "sctp" },
		"to: both ends of the flow are":                      func(f *Flow) { f.To = "a" },
		"dscp: 64 is not a DSCP":                             func(f *Flow) { f.DSCP = 64 },
		"congestion: only for tcp":                           func(f *Flow) { f.Protocol, f.Congestion = UDP, "bbr" },
		"payload: only for udp":                              func(f *Flow) { f.Payload = 100 },
		"payload: 3 bytes are not between":                   func(f *Flow) { f.Protocol, f.Payload = UDP, 3 },
		"backlog: -1ns is negative":                          func(f *Flow) { f.Backlog = -1 },
		"rate: step 2 is at 1ns: times must increase from 0": func(f *Flow) { f.Schedule = []Step{{At: 1}, {At: 1}} },
		"rate: step 1 exceeds 10Tbit":                        func(f *Flow) { f.Schedule = Constant(unit.MaxRate + 1) },
		"start: -1ns is before the run":                      func(f *Flow) { f.Start = -1 },
		"stop: the flow stops at 1ns":                        func(f *Flow) { f.Start, f.Stop = 2, 1 },
		"poisson: tcp segments its data itself":              func(f *Flow) { f.Poisson = &Poisson{Rate: unit.Mbit} },
		"poisson.size: the size of datagrams":                func(f *Flow) { f.Protocol, f.Poisson = UDP, &Poisson{unit.Mbit, Always[unit.Bytes](9)} },
		"on_off: the flow also has rate":                     func(f *Flow) { f.Schedule, f.OnOff = Constant(1), &OnOff{} },
		"transfer: only for tcp":                             func(f *Flow) { f.Protocol, f.Transfer = UDP, &Transfer{} },
		"instead of download":                                func(f *Flow) { f.Requests, f.Download = &Requests{}, true },
		"backlog: only for flows with a rate":                func(f *Flow) { f.Requests, f.Backlog = &Requests{}, 1 },
		"source port out":                                    func(f *Flow) { f.Transfer, f.SrcPort = &Transfer{}, 1 },
		"destination port":                                   func(f *Flow) { f.Transfer, f.Download, f.DstPort = &Transfer{}, true, 1 },
		"transfer.size: 2B is less than one byte":            func(f *Flow) { f.Transfer = &Transfer{Size: 2, Streams: 3} },
		"requests: requests come from users or at a rate":    func(f *Flow) { f.Requests = &Requests{} },
		"send_buffer: 1B is not":                             func(f *Flow) { f.SendBuffer = 1 },
		"on_off.rate: 0bit is not above":                     func(f *Flow) { f.OnOff = &OnOff{} },
		"requests.think: the think time":                     func(f *Flow) { f.Requests = &Requests{Rate: 1, Think: Always(time.Second)} },
		"requests.response.shape: an": func(f *Flow) {
			f.Requests = &Requests{Response: Distribution[unit.Bytes]{Kind: Exponential, Mean: 1, Shape: 1}}
		},
		"poisson: the rate of": func(f *Flow) { f.Protocol, f.Poisson = UDP, &Poisson{} },
	} {
		f := good
		change(&f)
		if err := f.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
}
