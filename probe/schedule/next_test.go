package schedule

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"headgate.dev/headgate/unit"
)

var hosts = []string{"a", "b", "c", "d", "e", "f"}

// drawn draws a valid schedule.
func drawn(t *rapid.T) *Schedule {
	n := rapid.IntRange(2, len(hosts)).Draw(t, "hosts")
	s := Schedule{Time: Duration(rapid.IntRange(1, 60).Draw(t, "time")) * Duration(time.Second), Bytes: 1_000_000}
	for _, name := range hosts[:n] {
		h := Host{Host: name}
		for _, l := range []string{"x", "y"} {
			if rapid.IntRange(0, 2).Draw(t, "link") == 0 {
				h.Links = append(h.Links, l)
			}
		}
		s.Hosts = append(s.Hosts, h)
	}
	if rapid.Bool().Draw(t, "pairs") {
		for i, from := range hosts[:n] {
			for _, to := range hosts[i+1 : n] {
				if rapid.Bool().Draw(t, "pair") {
					s.Pairs = append(s.Pairs, [2]string{to, from})
				}
			}
		}
	}
	for _, m := range []string{"tokenrate", "available"}[:rapid.IntRange(1, 2).Draw(t, "measures")] {
		s.Measures = append(s.Measures, Measure{Measure: m, Every: Duration(rapid.IntRange(1, 90).Draw(t, "every")) * Duration(time.Minute)})
	}
	s.Budget = s.Cost("tokenrate") * unit.Bytes(rapid.IntRange(1, 12).Draw(t, "budget"))
	s.Zone = rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"}).Draw(t, "zone")
	return &s
}

// withQuiet adds quiet hours that leave time for measurements.
func withQuiet(t *rapid.T, s *Schedule) {
	for range rapid.IntRange(0, 2).Draw(t, "quiet") {
		w := Window{From: Clock(rapid.IntRange(0, 1439).Draw(t, "from")), To: Clock(rapid.IntRange(0, 1440).Draw(t, "to"))}
		for _, d := range days {
			if rapid.IntRange(0, 3).Draw(t, "day") == 0 {
				w.Days = append(w.Days, d)
			}
		}
		s.Quiet = append(s.Quiet, w)
	}
	if len(s.Check()) > 0 {
		s.Quiet = nil
	}
}

// going is a simulated measurement.
type going struct {
	Run
	began, ends time.Time
	brings      unit.Bytes
	lost        bool // its result is lost
}

// world simulates hosts that follow a schedule.
type world struct {
	*Schedule
	st    State
	now   time.Time
	going []going
	began func(t Task)
	over  func(g going)
	rng   *rand.Rand
}

// step advances the time by d.
func (w *world) step(d time.Duration) {
	w.now = w.now.Add(d)
	w.going = slices.DeleteFunc(w.going, func(g going) bool {
		if g.ends.After(w.now) {
			return false
		}
		brought, last := g.brings, Last{At: w.now}
		if g.lost {
			brought, last.Failed = g.Reserved, w.st.Last[g.Task].Failed+1
		}
		for _, name := range []string{g.From, g.To} {
			w.st.Ledgers[name] = w.st.Ledgers[name].Settle(g.Run, w.Day(w.now), brought)
		}
		w.st.Last[g.Task] = last
		w.over(g)
		return true
	})
	w.st.Running = nil
	for _, g := range w.going {
		w.st.Running = append(w.st.Running, g.Run)
	}
	for _, t := range w.Next(w.now, w.st) {
		if !w.CanStart(w.now, t, w.st) {
			panic("May rejects a task that Next returned")
		}
		day := w.Day(w.now)
		for _, name := range []string{t.From, t.To} {
			w.st.Ledgers[name] = w.st.Ledgers[name].Reserve(day, w.Cost("tokenrate"))
		}
		r := Run{t, day, w.Cost("tokenrate")}
		took := time.Duration(w.rng.Int64N(int64(w.MaxDuration())))
		w.going = append(w.going, going{r, w.now, w.now.Add(took), unit.Bytes(w.rng.Int64N(int64(w.Cost("tokenrate")) + 1)), w.rng.IntN(10) == 0})
		w.st.Running = append(w.st.Running, r)
		w.began(t)
	}
}

func newWorld(s *Schedule, at time.Time, seed uint64) *world {
	return &world{Schedule: s, now: at, rng: rand.New(rand.NewPCG(seed, 0)), began: func(Task) {}, over: func(going) {},
		st: State{Hosts: hosts, Last: map[Task]Last{}, Ledgers: map[string]Ledger{}, Unavailable: map[string]bool{}}}
}

// Simulates several days, also days of 23 or 25 hours. Never do two measurements use one
// host or shared link, a host exceeds its daily budget whenever in its time a measurement
// sends, or a measurement runs in quiet hours. quietBy checks each second by comparing
// clock texts.
func TestNext(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawn(t)
		withQuiet(t, s)
		begin := rapid.SampledFrom([]string{"2026-03-28T20:00:00Z", "2026-10-24T20:00:00Z", "2026-11-01T00:30:00Z", "2026-06-03T12:00:00Z"}).Draw(t, "begin")
		at, err := time.Parse(time.RFC3339, begin)
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(s, at, rapid.Uint64().Draw(t, "seed"))
		zone := s.location()
		sent := map[string]unit.Bytes{} // by host and day
		w.over = func(g going) {
			brings := g.brings
			if g.lost {
				brings = g.Reserved // a lost measurement may have sent all of it
			}
			// The worst case for a day: all bytes are sent in the first or in the last
			// second.
			for _, day := range slices.Compact([]string{g.began.In(zone).Format(time.DateOnly), g.ends.In(zone).Format(time.DateOnly)}) {
				for _, name := range []string{g.From, g.To} {
					if sent[name+day] += brings; sent[name+day] > s.Budget {
						t.Fatalf("%s sent %v on %s, budget %v", name, sent[name+day], day, s.Budget)
					}
				}
			}
			for at := g.began; at.Before(g.ends); at = at.Add(time.Second) {
				if quietBy(s, at.In(zone)) {
					t.Fatalf("%v is measured at %v, in quiet hours %v", g.Task, at.In(zone), s.Quiet)
				}
			}
		}
		w.began = func(Task) {
			used := map[string]Task{}
			for _, g := range w.going {
				for _, n := range s.needs(g.Task) {
					if other, ok := used[n]; ok && other != g.Task {
						t.Fatalf("%v and %v both use %s", other, g.Task, n)
					}
					used[n] = g.Task
				}
			}
		}
		for range 600 {
			w.step(time.Duration(1+w.rng.IntN(120)) * time.Second)
		}
	})
}

// quietBy is an independent version of InQuietHours for one moment. It compares texts.
func quietBy(s *Schedule, at time.Time) bool {
	clock, today, yesterday := at.Format("15:04"), days[at.Weekday()], days[(at.Weekday()+6)%7]
	for _, w := range s.Quiet {
		on := func(day string) bool { return len(w.Days) == 0 || slices.Contains(w.Days, day) }
		from, to := w.From.String(), w.To.String()
		if from < to && on(today) && from <= clock && clock < to || from >= to && (on(today) && from <= clock || on(yesterday) && clock < to) {
			return true
		}
	}
	return false
}

// However busy hosts and links are, a due task begins before all others have had two
// turns.
func TestNoStarvation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawn(t)
		s.Budget = 1 << 50
		for i := range s.Measures {
			s.Measures[i].Every = Duration(time.Minute) // always due
		}
		w := newWorld(s, time.Date(2026, time.June, 1, 0, 0, 0, 0, time.UTC), rapid.Uint64().Draw(t, "seed"))
		tasks := s.Tasks(hosts)
		waits := map[Task]time.Time{}
		for _, task := range tasks {
			waits[task] = w.now
		}
		const step = 5 * time.Second
		maxWait := time.Duration(len(tasks)+1) * (s.MaxDuration() + step + time.Minute)
		w.began = func(task Task) { delete(waits, task) }
		w.over = func(g going) { waits[g.Task] = w.now }
		for range 800 {
			w.step(step)
			for task, since := range waits {
				if w.now.Sub(since) > maxWait {
					t.Fatalf("%v has waited since %v, with %d tasks", task, since, len(tasks))
				}
			}
		}
	})
}

// Two hosts that are always busy, and never idle at the same moment, still measure to
// each other.
func TestBothBusy(t *testing.T) {
	s := &Schedule{Pairs: [][2]string{{"a", "c"}, {"a", "d"}, {"a", "e"}, {"b", "f"}, {"b", "g"}, {"b", "h"}, {"a", "b"}},
		Measures: []Measure{{Measure: "path", Every: Duration(time.Minute)}}, Bytes: 1_000_000, Budget: 1 << 50, Time: Duration(time.Minute)}
	at := time.Date(2026, time.June, 1, 0, 0, 0, 0, time.UTC)
	st, ends := State{Last: map[Task]Last{}}, map[Task]time.Time{}
	for range 600 {
		at = at.Add(time.Second)
		for _, task := range s.Next(at, st) {
			if task == (Task{"a", "b", "path"}) {
				return
			}
			ends[task] = at.Add(100 * time.Second)
			if task.To == "f" && at.Second() == 1 { // the first one: b is half a measurement ahead
				ends[task] = at.Add(50 * time.Second)
			}
			st.Running = append(st.Running, Run{Task: task})
		}
		st.Running = slices.DeleteFunc(st.Running, func(r Run) bool {
			over := !ends[r.Task].After(at)
			if over {
				st.Last[r.Task] = Last{At: at}
			}
			return over
		})
	}
	t.Error("the two hosts did not measure to each other in ten minutes")
}

// A failed task is retried after one minute, two, four, up to its interval. A host that
// is away blocks no other task. A task that exceeds the budget waits for the next day.
func TestRetry(t *testing.T) {
	s := &Schedule{Hosts: []Host{{Host: "a"}, {Host: "b"}, {Host: "c"}}, Measures: []Measure{{Measure: "path", Every: Duration(10 * time.Minute)}}, Bytes: 1_000_000, Time: Duration(time.Second), Zone: "Europe/Berlin"}
	s.Budget = 2 * s.Cost("path")
	now := time.Date(2026, time.June, 1, 12, 0, 0, 0, time.UTC)
	ab, ac, bc := Task{"a", "b", "path"}, Task{"a", "c", "path"}, Task{"b", "c", "path"}
	for failed, want := range map[int]time.Duration{0: 10 * time.Minute, 1: time.Minute, 2: 2 * time.Minute, 4: 8 * time.Minute, 5: 10 * time.Minute, 99: 10 * time.Minute} {
		st := State{Last: map[Task]Last{ab: {now, failed}, ac: {now.Add(time.Hour), 0}, bc: {now.Add(time.Hour), 0}}}
		if got := s.Next(now.Add(want-time.Second), st); len(got) != 0 {
			t.Errorf("after %d failures: %v begins a second too early", failed, got)
		}
		if got := s.Next(now.Add(want), st); !slices.Equal(got, []Task{ab}) {
			t.Errorf("after %d failures: %v begins", failed, got)
		}
	}
	if got := s.Next(now, State{Unavailable: map[string]bool{"a": true}}); !slices.Equal(got, []Task{bc}) {
		t.Errorf("with host a away: %v", got)
	}
	if got := s.Next(now, State{Running: []Run{{Task: ac}}}); len(got) != 0 {
		t.Errorf("with hosts a and c busy: %v", got)
	}
	spent := State{Ledgers: map[string]Ledger{"a": {"2026-06-01", s.Cost("path") + 1}}}
	if got := s.Next(now, spent); !slices.Equal(got, []Task{bc}) {
		t.Errorf("with the budget of host a used up: %v", got)
	}
	// Days end at midnight in the schedule's time zone.
	if got := s.Next(now.Add(10*time.Hour-time.Minute), spent); !slices.Equal(got, []Task{bc}) {
		t.Errorf("before midnight: %v", got)
	}
	if got := s.Next(now.Add(10*time.Hour), spent); !slices.Equal(got, []Task{ab}) {
		t.Errorf("after midnight: %v", got)
	}
}

func TestCheck(t *testing.T) {
	right := func() Schedule {
		return Schedule{Hosts: []Host{{Host: "a"}, {Host: "b", Address: "10.0.0.2:5000", Links: []string{"x"}}}, Measures: []Measure{{Measure: "path", Every: Duration(time.Hour)}}, Budget: 100_000_000}.WithDefaults()
	}
	if s := right(); len(s.Check()) > 0 || s.Cost("path") != 22_500_000 || s.Bytes != defaultBytes {
		t.Fatalf("%v: %+v", s.Check(), s)
	}
	for field, spoil := range map[string]func(s *Schedule){
		"hosts":              func(s *Schedule) { s.Hosts = s.Hosts[:1] },
		"hosts.1.host":       func(s *Schedule) { s.Hosts[1].Host = "a" },
		"hosts.1.address":    func(s *Schedule) { s.Hosts[1].Address = ":1" },
		"pairs.0":            func(s *Schedule) { s.Pairs = [][2]string{{"a", "z"}} },
		"pairs.1":            func(s *Schedule) { s.Pairs = [][2]string{{"a", "b"}, {"b", "a"}} },
		"measures":           func(s *Schedule) { s.Measures = nil },
		"measures.0.measure": func(s *Schedule) { s.Measures[0].Measure = "delay" },
		"measures.0.every":   func(s *Schedule) { s.Measures[0].Every = Duration(time.Second) },
		"bytes":              func(s *Schedule) { s.Bytes = 1000 },
		"time":               func(s *Schedule) { s.Time = Duration(time.Hour) },
		"budget":             func(s *Schedule) { s.Budget = s.Cost("path") - 1 },
		"measures.0.bytes":   func(s *Schedule) { s.Measures[0].Bytes = 300_000_000 },
		"measures.0.time":    func(s *Schedule) { s.Measures[0].Time = Duration(time.Hour) },
		"zone":               func(s *Schedule) { s.Zone = "Berlin" },
		"quiet.0":            func(s *Schedule) { s.Quiet = []Window{{From: 60, To: 60}} },
		"quiet.0.days":       func(s *Schedule) { s.Quiet = []Window{{Days: []string{"Monday"}, From: 60, To: 90}} },
		"quiet":              func(s *Schedule) { s.Quiet = []Window{{From: 0, To: 1440}} },
	} {
		s := right()
		spoil(&s)
		all := s.Check()
		if len(all) == 0 || all[0].Field != field {
			t.Errorf("%s: %v", field, all)
		}
	}
}

func TestText(t *testing.T) {
	var c Clock
	for text, want := range map[string]Clock{"00:00": 0, "08:30": 510, "24:00": wholeDay} {
		if err := c.UnmarshalText([]byte(text)); err != nil || c != want || c.String() != text {
			t.Errorf("%s parses as %v, %v", text, c, err)
		}
	}
	for _, text := range []string{"", "8:30", "24:01", "08:30:00", "x"} {
		if err := c.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q parses as %v", text, c)
		}
	}
	for text, want := range map[string]string{"90m": "90m", "6h": "6h", "1h30m0.5s": "1h30m0.5s", "120s": "2m"} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err != nil || fmt.Sprint(d) != want {
			t.Errorf("%s parses as %v, %v", text, d, err)
		}
	}
}
