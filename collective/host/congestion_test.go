package host

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"headgate.dev/headgate/unit"
)

// A file of congestions outlives a process that is killed while it writes, and old ones leave it.
func TestCongestionLog(t *testing.T) {
	l := congestionLog{file: filepath.Join(t.TempDir(), "host.congestions.jsonl")}
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	at := func(ago time.Duration, set string) Congestion {
		return Congestion{Set: set, From: now.Add(-ago - time.Minute), To: now.Add(-ago), Connections: []CongestedConnection{{Service: "10.0.0.1:5432", Carried: 1e6}}}
	}
	old, recent := at(8*24*time.Hour, "old"), at(time.Hour, "recent")
	l.add([]Congestion{old, recent})
	f, err := os.OpenFile(l.file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"set":"torn","fr`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	last := at(0, "last")
	l.add([]Congestion{last})
	if all, err := readCongestions(l.file); err != nil || !reflect.DeepEqual(all, []Congestion{old, recent, last}) {
		t.Errorf("%+v, %v", all, err)
	}
	if err := l.trim(now); err != nil {
		t.Fatal(err)
	}
	if all, err := readCongestions(l.file); err != nil || !reflect.DeepEqual(all, []Congestion{recent, last}) {
		t.Errorf("after a week: %+v, %v", all, err)
	}
	if all, err := readCongestions(filepath.Join(t.TempDir(), "none")); err != nil || all != nil {
		t.Errorf("without a file: %v, %v", all, err)
	}
}

// A report says which parts services had, and which they were meant to have. A service that asked for less does not count.
func TestReports(t *testing.T) {
	from := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	one := func(service string, learned float64, megabytes float64, waited float64) CongestedConnection {
		return CongestedConnection{Service: service, Learned: unit.Rate(learned * 1e6), Carried: unit.Bytes(megabytes * 1e6), Segments: 1000, Retransmits: 10, Seconds: 60, Waited: waited}
	}
	got := Reports([]Congestion{
		{Set: "db", From: from, To: from.Add(time.Minute), DryRun: true, Connections: []CongestedConnection{
			one("10.0.0.1:5432", 4, 40, 60), one("10.0.0.1:5433", 2, 40, 60), one("10.0.0.1:5434", 1, 40, 58), one("10.0.0.1:22", 1, 1, 2),
		}},
		{Set: "db", From: from.Add(time.Hour), To: from.Add(time.Hour + time.Minute), DryRun: true, Connections: []CongestedConnection{
			one("10.0.0.1:5432", 4, 40, 60), one("10.0.0.1:5433", 2, 40, 60), one("10.0.0.1:5434", 1, 40, 60),
		}},
		{Set: "web", Destination: "10.0.0.2", From: from, To: from.Add(time.Minute), Suspended: true},
	})
	if len(got) != 2 || got[0].Set != "db" || got[1].Destination != "10.0.0.2" || got[1].Suspended != 1 || got[1].DryRun {
		t.Fatalf("%+v", got)
	}
	db := got[0]
	if db.Congestions != 2 || db.Duration != 2*time.Minute || !db.DryRun || len(db.Services) != 4 || math.Abs(db.Off-4.0/3) > 0.01 {
		t.Errorf("%+v", db)
	}
	for i, want := range []ServiceReport{
		{Service: "10.0.0.1:5432", Meant: 4.0 / 7, Had: 1.0 / 3, Waits: true}, {Service: "10.0.0.1:5433", Meant: 2.0 / 7, Had: 1.0 / 3, Waits: true},
		{Service: "10.0.0.1:5434", Meant: 1.0 / 7, Had: 1.0 / 3, Waits: true}, {Service: "10.0.0.1:22"},
	} {
		s := db.Services[i]
		if s.Service != want.Service || s.Waits != want.Waits || math.Abs(s.Meant-want.Meant) > 0.01 || math.Abs(s.Had-want.Had) > 0.01 || math.Abs(s.Resent-0.01) > 1e-9 {
			t.Errorf("%+v, want %+v", s, want)
		}
	}
	if r := float64(db.Services[0].RateMeant); math.Abs(r/(240e6*8/120*4/7)-1) > 0.01 {
		t.Errorf("in its proportion it would have %v", db.Services[0].RateMeant)
	}
}
