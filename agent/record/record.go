package record

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"headgate/internal/wholefile"
	"headgate/usage"
)

// Ours.
const (
	// kept is how long minutes are.
	kept = 7 * 24 * time.Hour
	// saveEvery bounds what a power cut takes; a process that is killed loses nothing, because
	// the kernel counts on.
	saveEvery = 10 * time.Second
	// longest is the longest time between two readings that is accounted as one: what is longer
	// was not seen, and whether guarantees were met in it is not known.
	longest = 10 * time.Second
	// unread is for how long the counters of a device that is not read any more are kept: what
	// fails for a while and then succeeds loses nothing.
	unread = 10 * time.Minute
)

// Record is on disk, in a folder: a file a day, of lines, and the current minute.
type Record struct {
	dir string

	mu    sync.Mutex
	now   current
	saved time.Time
}

// current is the minute that is not over.
type current struct {
	Minute int64     `json:"minute"` // since the epoch
	At     time.Time `json:"at"`     // of the last reading
	// Read are counters at that reading, and Usage is of the minute so far, by device and group.
	Read  map[string]map[string]usage.Counters `json:"read"`
	Usage map[string]map[string]usage.Usage    `json:"usage"`
	// Late are the devices that the last reading did not have, with the time of their own last one.
	Late map[string]time.Time `json:"late,omitempty"`
}

// line is one minute of one device.
type line struct {
	Minute int64                  `json:"minute"`
	Dev    string                 `json:"dev"`
	Groups map[string]usage.Usage `json:"groups"`
}

// Open reads what a folder has. A current minute that is damaged is set aside: what groups had in
// it is lost, and nothing else.
func Open(dir string) (*Record, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	r := &Record{dir: dir}
	text, err := os.ReadFile(r.current())
	if err == nil {
		err = json.Unmarshal(text, &r.now)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		aside := r.current() + ".damaged"
		slog.Warn("the current minute cannot be read: what groups have is counted anew from now on, and the file is set aside", "to", aside, "error", errors.Join(err, os.Rename(r.current(), aside)))
		r.now = current{}
	}
	if r.now.Read == nil {
		r.now.Read = map[string]map[string]usage.Counters{}
	}
	if r.now.Usage == nil {
		r.now.Usage = map[string]map[string]usage.Usage{}
	}
	if r.now.Late == nil {
		r.now.Late = map[string]time.Time{}
	}
	return r, nil
}

func (r *Record) current() string { return filepath.Join(r.dir, "current.json") }

// Take accounts for a reading of all devices that have groups.
func (r *Record) Take(at time.Time, devices map[string][]usage.Group) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	minute := at.Unix() / 60
	if r.now.Minute != minute {
		if err := r.finish(); err != nil {
			return err
		}
		r.now.Minute, r.now.Usage = minute, map[string]map[string]usage.Usage{}
	}
	for dev, groups := range devices {
		before, known := r.now.Read[dev]
		groups = stamped(groups, at)
		r.now.Read[dev] = counters(groups)
		last := r.last(dev)
		took := at.Sub(last)
		delete(r.now.Late, dev)
		if !known || took <= 0 {
			continue
		}
		for name, c := range before { // an earlier version's
			if c.At.IsZero() {
				c.At = last
				before[name] = c
			}
		}
		to := r.now.Usage[dev]
		if to == nil {
			to = map[string]usage.Usage{}
			r.now.Usage[dev] = to
		}
		for _, direction := range []string{"out/", "in/"} {
			of := slices.DeleteFunc(slices.Clone(groups), func(g usage.Group) bool { return !strings.HasPrefix(g.Name, direction) })
			for name, u := range usage.Account(before, of) {
				if took > longest { // it was not there: what left is known, and nothing else
					u = usage.Usage{Delivered: u.Delivered, Offered: u.Offered, Drops: u.Drops, Marks: u.Marks}
				}
				sum := to[name]
				sum.Add(u)
				to[name] = sum
			}
		}
	}
	for dev := range r.now.Read {
		if _, there := devices[dev]; there {
			continue
		}
		// It is gone, or could not be read this time.
		if r.now.Late[dev] = r.last(dev); at.Sub(r.now.Late[dev]) > unread {
			delete(r.now.Read, dev)
			delete(r.now.Late, dev)
		}
	}
	r.now.At = at
	if at.Sub(r.saved) < saveEvery {
		return nil
	}
	return r.save(at)
}

// last is when a device was read last.
func (r *Record) last(dev string) time.Time {
	if at, late := r.now.Late[dev]; late {
		return at
	}
	return r.now.At
}

// stamped gives counters that do not say when they were read the time of the reading.
func stamped(groups []usage.Group, at time.Time) []usage.Group {
	out := slices.Clone(groups)
	for n := range out {
		if out[n].At.IsZero() {
			out[n].At = at
		}
	}
	return out
}

func counters(groups []usage.Group) map[string]usage.Counters {
	out := make(map[string]usage.Counters, len(groups))
	for _, g := range groups {
		out[g.Name] = g.Counters
	}
	return out
}

// Close writes what there is.
func (r *Record) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.save(r.now.At)
}

func (r *Record) save(at time.Time) error {
	r.saved = at
	text, err := json.Marshal(r.now)
	if err != nil {
		return err
	}
	return wholefile.Write(r.current(), text, 0o600)
}

// finish writes the minute that is over. It is saved as the current one before, with the counters
// of its last reading: who is killed after that writes the same minute again, which is read once,
// and goes on from these counters.
func (r *Record) finish() error {
	if len(r.now.Usage) == 0 {
		return nil
	}
	if err := r.save(r.now.At); err != nil {
		return err
	}
	f, err := os.OpenFile(r.day(r.now.Minute), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	text := []byte{'\n'} // ends a line that was cut off
	for dev, groups := range r.now.Usage {
		one, err := json.Marshal(line{r.now.Minute, dev, groups})
		if err != nil {
			return errors.Join(err, f.Close())
		}
		text = append(append(text, one...), '\n')
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	r.forget()
	return nil
}

func (r *Record) day(minute int64) string {
	return filepath.Join(r.dir, time.Unix(60*minute, 0).UTC().Format(time.DateOnly)+".jsonl")
}

// forget removes days that are over for long.
func (r *Record) forget() {
	days, _ := filepath.Glob(filepath.Join(r.dir, "*.jsonl"))
	for _, d := range days {
		day, err := time.Parse(time.DateOnly, strings.TrimSuffix(filepath.Base(d), ".jsonl"))
		if err == nil && r.now.At.Sub(day) > kept+24*time.Hour {
			os.Remove(d)
		}
	}
}

// Usage is what each group of each device had from one time to another, by whole minutes; the
// current one is in it as far as it is. What nobody keeps that long, or is to come, is not looked for.
func (r *Record) Usage(since, until time.Time) (map[string]map[string]usage.Usage, error) {
	// Files are read without the lock, because whoever meters does not wait. A minute that is over
	// meanwhile is in its file, or here; where it is in both, the file's is read, which is whole.
	r.mu.Lock()
	now := current{Minute: r.now.Minute, At: r.now.At, Usage: map[string]map[string]usage.Usage{}}
	for dev, groups := range r.now.Usage {
		now.Usage[dev] = maps.Clone(groups)
	}
	r.mu.Unlock()
	newest := cmp.Or(now.At, time.Now())
	if oldest := newest.Add(-kept - 24*time.Hour); since.Before(oldest) {
		since = oldest
	}
	if until.After(newest) {
		until = newest
	}
	from, to := since.Unix()/60, until.Unix()/60
	out := map[string]map[string]usage.Usage{}
	seen := map[string]bool{}
	add := func(l line) {
		key := fmt.Sprint(l.Minute, " ", l.Dev)
		if l.Minute < from || l.Minute > to || seen[key] {
			return
		}
		seen[key] = true
		sums := out[l.Dev]
		if sums == nil {
			sums = map[string]usage.Usage{}
			out[l.Dev] = sums
		}
		for name, u := range l.Groups {
			sum := sums[name]
			sum.Add(u)
			sums[name] = sum
		}
	}
	for day := since.UTC().Truncate(24 * time.Hour); !day.After(until); day = day.Add(24 * time.Hour) {
		if err := read(r.day(day.Unix()/60), add); err != nil {
			return nil, err
		}
	}
	for dev, groups := range now.Usage {
		add(line{now.Minute, dev, groups})
	}
	return out, nil
}

// read reads a day; a line that was not finished is left out.
func read(name string, add func(line)) error {
	f, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var l line
		if json.Unmarshal(lines.Bytes(), &l) == nil {
			add(l)
		}
	}
	return lines.Err()
}
