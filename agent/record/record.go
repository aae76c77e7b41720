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

	"headgate.dev/headgate/internal/wholefile"
	"headgate.dev/headgate/usage"
)

// Limits of the record.
const (
	// retention is how long minutes are kept.
	retention = 7 * 24 * time.Hour
	// saveEvery bounds the loss at a power failure. A killed process loses nothing, because the
	// kernel continues to count.
	saveEvery = 10 * time.Second
	// maxInterval is the longest time between two readings for which all fields are computed. After a
	// longer gap, whether guarantees were met is unknown.
	maxInterval = 10 * time.Second
	// maxUnread is how long the counters of a device that cannot be read are kept, so that a temporary
	// failure loses nothing.
	maxUnread = 10 * time.Minute
)

// Record is stored in a directory: one file of lines per day, and a file of the current minute.
type Record struct {
	dir string

	mu     sync.Mutex
	minute current
	saved  time.Time
}

// current is the current minute.
type current struct {
	Minute int64     `json:"minute"` // since the epoch
	At     time.Time `json:"at"`     // time of the last reading
	// Read has the counters at that reading, and Usage the usage in the minute so far, by device
	// and group.
	Read  map[string]map[string]usage.Counters `json:"read"`
	Usage map[string]map[string]usage.Usage    `json:"usage"`
	// LastRead has the devices that the last reading did not include, with the times of their own last
	// readings.
	LastRead map[string]time.Time `json:"late,omitempty"`
}

// line is one minute of one device.
type line struct {
	Minute int64                  `json:"minute"`
	Dev    string                 `json:"dev"`
	Groups map[string]usage.Usage `json:"groups"`
}

// Open reads a directory's records. A damaged file of the current minute is renamed, and only the
// usage in that minute is lost.
func Open(dir string) (*Record, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	r := &Record{dir: dir}
	text, err := os.ReadFile(r.currentFile())
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("cannot read usage of the current minute: %w", err)
	default:
		err = json.Unmarshal(text, &r.minute)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		aside := r.currentFile() + ".damaged"
		slog.Warn("cannot read usage of the current minute: counting from 0, damaged file renamed", "path", aside, "error", errors.Join(err, os.Rename(r.currentFile(), aside)))
		r.minute = current{}
	}
	if r.minute.Read == nil {
		r.minute.Read = map[string]map[string]usage.Counters{}
	}
	if r.minute.Usage == nil {
		r.minute.Usage = map[string]map[string]usage.Usage{}
	}
	if r.minute.LastRead == nil {
		r.minute.LastRead = map[string]time.Time{}
	}
	return r, nil
}

func (r *Record) currentFile() string { return filepath.Join(r.dir, "current.json") }

// Add records a reading of all devices that have groups.
func (r *Record) Add(at time.Time, devices map[string][]usage.Direction) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	minute := at.Unix() / 60
	if r.minute.Minute != minute {
		if err := r.flushMinute(); err != nil {
			return err
		}
		r.minute.Minute, r.minute.Usage = minute, map[string]map[string]usage.Usage{}
	}
	for dev, directions := range devices {
		before, known := r.minute.Read[dev]
		directions = withTime(directions, at)
		r.minute.Read[dev] = counters(directions)
		last := r.last(dev)
		took := at.Sub(last)
		delete(r.minute.LastRead, dev)
		if !known || took <= 0 {
			continue
		}
		for name, c := range before { // written by an earlier version
			if c.At.IsZero() {
				c.At = last
				before[name] = c
			}
		}
		to := r.minute.Usage[dev]
		if to == nil {
			to = map[string]usage.Usage{}
			r.minute.Usage[dev] = to
		}
		for _, d := range directions {
			for n, u := range usage.Account(of(before, d.Name), d) {
				if took > maxInterval { // only counters are known for such an interval
					u = usage.Usage{Delivered: u.Delivered, Offered: u.Offered, Drops: u.Drops, Marks: u.Marks}
				}
				name := d.Key(d.Groups[n])
				sum := to[name]
				sum.Add(u)
				to[name] = sum
			}
		}
	}
	for dev := range r.minute.Read {
		if _, there := devices[dev]; there {
			continue
		}
		// The device was removed, or could not be read this time.
		if r.minute.LastRead[dev] = r.last(dev); at.Sub(r.minute.LastRead[dev]) > maxUnread {
			delete(r.minute.Read, dev)
			delete(r.minute.LastRead, dev)
		}
	}
	r.minute.At = at
	if at.Sub(r.saved) < saveEvery {
		return nil
	}
	return r.save(at)
}

// last returns the time of a device's last reading.
func (r *Record) last(dev string) time.Time {
	if at, late := r.minute.LastRead[dev]; late {
		return at
	}
	return r.minute.At
}

// withTime sets the time of counters without one to the time of the reading.
func withTime(directions []usage.Direction, at time.Time) []usage.Direction {
	out := slices.Clone(directions)
	for n := range out {
		out[n].Groups = slices.Clone(out[n].Groups)
		for g := range out[n].Groups {
			if c := &out[n].Groups[g].Counters; c.At.IsZero() {
				c.At = at
			}
		}
	}
	return out
}

// counters returns the counters of a device by direction and path ("out/web").
func counters(directions []usage.Direction) map[string]usage.Counters {
	out := map[string]usage.Counters{}
	for _, d := range directions {
		for path, c := range d.Counters() {
			out[d.Name+"/"+path] = c
		}
	}
	return out
}

// of returns the counters of one direction by path.
func of(all map[string]usage.Counters, direction string) map[string]usage.Counters {
	out := map[string]usage.Counters{}
	for name, c := range all {
		if path, ok := strings.CutPrefix(name, direction+"/"); ok {
			out[path] = c
		}
	}
	return out
}

// Close writes the current minute.
func (r *Record) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.save(r.minute.At)
}

func (r *Record) save(at time.Time) error {
	r.saved = at
	text, err := json.Marshal(r.minute)
	if err != nil {
		return err
	}
	return wholefile.Write(r.currentFile(), text, 0o600)
}

// flushMinute appends the completed minute to the day's file. The minute is saved as the current one
// before that, with the counters of its last reading: a process that is killed in between appends
// the same minute again, and readers ignore the repetition.
func (r *Record) flushMinute() error {
	if len(r.minute.Usage) == 0 {
		return nil
	}
	if err := r.save(r.minute.At); err != nil {
		return err
	}
	f, err := os.OpenFile(r.day(r.minute.Minute), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	text := []byte{'\n'} // ends a line that was truncated
	for dev, groups := range r.minute.Usage {
		one, err := json.Marshal(line{r.minute.Minute, dev, groups})
		if err != nil {
			return errors.Join(err, f.Close())
		}
		text = append(append(text, one...), '\n')
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	r.removeOldFiles()
	return nil
}

func (r *Record) day(minute int64) string {
	return filepath.Join(r.dir, time.Unix(60*minute, 0).UTC().Format(time.DateOnly)+".jsonl")
}

// removeOldFiles removes the files of days that are older than retention.
func (r *Record) removeOldFiles() {
	days, _ := filepath.Glob(filepath.Join(r.dir, "*.jsonl"))
	for _, d := range days {
		day, err := time.Parse(time.DateOnly, strings.TrimSuffix(filepath.Base(d), ".jsonl"))
		if err == nil && r.minute.At.Sub(day) > retention+24*time.Hour {
			os.Remove(d)
		}
	}
}

// Usage returns the usage of each group of each device between two times, in whole minutes; the
// current minute is included as far as it is recorded. Times before the oldest record or after the
// last reading are cut off.
func (r *Record) Usage(since, until time.Time) (map[string]map[string]usage.Usage, error) {
	// Files are read without the lock, so that readings do not wait. A minute that is completed
	// meanwhile is in its file or in the copy. If it is in both, the file's is used, which is
	// complete.
	r.mu.Lock()
	now := current{Minute: r.minute.Minute, At: r.minute.At, Usage: map[string]map[string]usage.Usage{}}
	for dev, groups := range r.minute.Usage {
		now.Usage[dev] = maps.Clone(groups)
	}
	r.mu.Unlock()
	newest := cmp.Or(now.At, time.Now())
	if oldest := newest.Add(-retention - 24*time.Hour); since.Before(oldest) {
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

// read reads a day's file and ignores truncated lines.
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
