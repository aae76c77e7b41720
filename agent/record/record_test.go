package record

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"headgate.dev/headgate/unit"
	"headgate.dev/headgate/usage"
)

// reading returns the counters of one group.
func reading(bytes uint64) map[string][]usage.Direction {
	return map[string][]usage.Direction{"eth0": {{Name: "out", Groups: []usage.Group{{Path: "a", Parent: -1, Leaf: true, Guarantee: 8 * unit.Mbit, Counters: usage.Counters{Bytes: bytes, Packets: bytes / 1000}}}}}}
}

// Minutes survive a kill at any time, each once, and no counted byte is lost.
func TestRecord(t *testing.T) {
	dir := t.TempDir()
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Date(2026, 5, 1, 23, 58, 0, 0, time.UTC)
	take := func(second int, bytes uint64) {
		t.Helper()
		if err := r.Add(begin.Add(time.Duration(second)*time.Second), reading(bytes)); err != nil {
			t.Fatal(err)
		}
	}
	total := func(from, to int) usage.Usage {
		t.Helper()
		all, err := r.Usage(begin.Add(time.Duration(from)*time.Minute), begin.Add(time.Duration(to)*time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		return all["eth0"]["out/a"]
	}
	for s := range 200 { // more than three minutes, across midnight
		take(s, uint64(s)*1000)
	}
	if u := total(0, 9); u.Delivered != 199_000 || u.Seconds != 199 {
		t.Errorf("usage of 200 s is %+v", u)
	}
	if u := total(1, 1); u.Delivered != 60_000 || u.Seconds != 60 {
		t.Errorf("usage of one minute is %+v", u)
	}
	// Killed: the last write was in second 190 or later.
	if r, err = Open(dir); err != nil {
		t.Fatal(err)
	}
	take(203, 203_000)
	take(204, 204_000)
	if u := total(0, 9); u.Delivered != 204_000 {
		t.Errorf("usage after a kill is %+v", u)
	}
	// Killed between the writes of the minute and of the current state: the minute is written twice.
	day := filepath.Join(dir, "2026-05-01.jsonl")
	text, err := os.ReadFile(day)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(day, append(text, append(text, `{"minute": 29`...)...), 0o600); err != nil {
		t.Fatal(err)
	}
	if u := total(0, 9); u.Delivered != 204_000 {
		t.Errorf("usage with a repeated minute is %+v", u)
	}
	// No reading for a minute: the delivered bytes are known, unmet guarantees are not.
	take(264, 300_000)
	if u := total(0, 9); u.Delivered != 300_000 || u.Seconds > 206 {
		t.Errorf("usage after a minute without readings is %+v", u)
	}
	// A recreated group is counted from 0.
	take(265, 1000)
	if u := total(0, 9); u.Delivered != 301_000 {
		t.Errorf("usage after the group was recreated is %+v", u)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// A process that is killed at any second, also during or right after the write of a minute, counts
// every byte once.
func TestKilled(t *testing.T) {
	begin := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	try := func(name string, at int, cut func(day []byte) []byte) {
		dir := t.TempDir()
		var r *Record
		run := func(from, to int) {
			t.Helper()
			var err error
			if r, err = Open(dir); err != nil {
				t.Fatal(err)
			}
			for s := from; s <= to; s++ {
				if err := r.Add(begin.Add(time.Duration(s)*time.Second), reading(uint64(s)*1000)); err != nil {
					t.Fatal(err)
				}
			}
		}
		run(3, at) // starts at 3 so that the current minute is not saved exactly when a minute begins
		day := filepath.Join(dir, "2026-05-01.jsonl")
		if text, err := os.ReadFile(day); err == nil {
			if err := os.WriteFile(day, cut(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		run(at+1, 130)
		for _, c := range []struct {
			from, to int // minutes
			want     uint64
		}{{0, 9, 127}, {0, 0, 56}, {1, 1, 60}, {2, 2, 11}} {
			all, err := r.Usage(begin.Add(time.Duration(c.from)*time.Minute), begin.Add(time.Duration(c.to)*time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			if at < 60 && c.from == c.to {
				continue // bytes of an unobserved time belong to the minute of the next reading
			}
			if u := all["eth0"]["out/a"]; u.Delivered != 1000*c.want || u.Seconds != float64(c.want) {
				t.Errorf("killed %s, usage of minutes %d to %d is %+v, want %d s", name, c.from, c.to, u, c.want)
			}
		}
	}
	whole := func(day []byte) []byte { return day }
	for at := 50; at < 75; at++ {
		try(fmt.Sprint("after second ", at), at, whole)
	}
	try("before a minute was written", 60, func([]byte) []byte { return nil })
	try("while a minute was written", 60, func(day []byte) []byte { return day[:len(day)/2] })
}

// No byte of a device that could not be read for some time is lost, even if the process was killed
// meanwhile. A device that does not return is forgotten.
func TestUnread(t *testing.T) {
	dir := t.TempDir()
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	take := func(second int, devices map[string][]usage.Direction) {
		t.Helper()
		if err := r.Add(begin.Add(time.Duration(second)*time.Second), devices); err != nil {
			t.Fatal(err)
		}
	}
	take(0, reading(0))
	take(1, reading(1000))
	take(2, nil)
	if r, err = Open(dir); err != nil { // last saved at second 0
		t.Fatal(err)
	}
	take(3, nil)
	take(4, nil)
	take(5, reading(5000))
	all, err := r.Usage(begin, begin)
	if err != nil {
		t.Fatal(err)
	}
	if u := all["eth0"]["out/a"]; u.Delivered != 5000 || u.Seconds != 5 {
		t.Errorf("usage of 5 s, 3 of them without a reading, is %+v", u)
	}
	take(6, nil)
	take(6+int(maxUnread/time.Second)+1, nil)
	if len(r.minute.Read) > 0 || len(r.minute.LastRead) > 0 {
		t.Errorf("a removed device is still recorded: %+v", r.minute)
	}
}

// A damaged file of the current minute is renamed, and a new one is started.
func TestDamaged(t *testing.T) {
	begin := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	whole := fmt.Sprintf(`{"minute":%d,"read":{}}`, begin.Unix()/60) // valid JSON without usage
	for _, text := range []string{"", "{", `{"minute":1,"at":"x"}`, whole} {
		dir := t.TempDir()
		file := filepath.Join(dir, "current.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Open(dir)
		if err != nil {
			t.Errorf("with %q: %v", text, err)
			continue
		}
		for s := range 2 {
			if err := r.Add(begin.Add(time.Duration(s)*time.Second), reading(uint64(s)*1000)); err != nil {
				t.Error(err)
			}
		}
		if all, err := r.Usage(begin, begin); err != nil || all["eth0"]["out/a"].Delivered != 1000 {
			t.Errorf("with %q: usage is %+v, %v", text, all, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if aside, err := os.ReadFile(file + ".damaged"); text != whole && (err != nil || string(aside) != text) {
			t.Errorf("renamed file has %q, %v, want %q", aside, err, text)
		}
		if _, err := Open(dir); err != nil {
			t.Error(err)
		}
	}
}

// BenchmarkUsage reads a week of minutes.
func BenchmarkUsage(b *testing.B) {
	r, err := Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	begin := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	var groups []usage.Group
	for g := range 50 {
		groups = append(groups, usage.Group{Path: fmt.Sprint("g", g), Parent: -1, Leaf: true, Guarantee: unit.Mbit})
	}
	for m := range 7 * 24 * 60 {
		for s := range 2 {
			for g := range groups {
				groups[g].Bytes += 1000
			}
			if err := r.Add(begin.Add(time.Duration(60*m+5*s)*time.Second), map[string][]usage.Direction{"eth0": {{Name: "out", Groups: groups}}}); err != nil {
				b.Fatal(err)
			}
		}
	}
	for b.Loop() {
		if _, err := r.Usage(begin, begin.Add(7*24*time.Hour)); err != nil {
			b.Fatal(err)
		}
	}
}
