package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/internal/plot"
)

// journal is a file with one line for each completed run of a case, so that a bench of hours can be
// resumed after any interruption, and at a later commit: the result names the commit of each run that
// is not of the program's own.
type journal struct {
	mu     sync.Mutex
	file   *os.File // locked while it is open
	size   int64    // of complete lines
	have   map[journalKey]journalLine
	took   float64 // seconds of earlier invocations
	commit string  // of the runs that are added
}

type journalKey struct {
	name string
	run  int
}

// journalHead is the first line. All runs of a journal have it in common, except for the commit, which
// is that of the program that began it.
type journalHead struct {
	Bench  string `json:"bench"`
	Seed   uint64 `json:"seed"`
	Quick  bool   `json:"quick"`
	Commit string `json:"commit"`
}

// journalLine is one run of a case; without one it is the end of an invocation, with its duration.
type journalLine struct {
	Seconds float64 `json:"seconds,omitempty"`

	Case   string         `json:"case,omitempty"`
	Run    int            `json:"run,omitempty"`
	Commit string         `json:"commit,omitempty"`
	Drawn  string         `json:"drawn,omitempty"` // Case.Drawn: another commit may draw another case
	Sheets []journalSheet `json:"sheets,omitempty"`
	Plots  []plot.Plot    `json:"plots,omitempty"`
}

// journalSheet is a sheet with the fields that the result's JSON has elsewhere.
type journalSheet struct {
	*Sheet
	Notes    map[string][]string `json:"notes,omitempty"`
	Unusable []string            `json:"unusable,omitempty"`
}

// openJournal opens or creates the file. It removes an incomplete line of a killed process from the
// end. It leaves a file that is not a journal, or not this bench's, unchanged.
func openJournal(path string, head journalHead) (_ *journal, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cannot open the journal: %w", err)
	}
	defer func() {
		if err != nil {
			f.Close()
			err = fmt.Errorf("journal %s: %w", path, err)
		}
	}()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return nil, errors.New("another bench is writing to it: wait for it to end, or set another file")
	} else if err != nil {
		return nil, fmt.Errorf("cannot lock the file: %w", err)
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	j := &journal{file: f, size: int64(bytes.LastIndexByte(text, '\n') + 1), have: map[journalKey]journalLine{}, commit: head.Commit}
	if j.size == 0 && !head.begunBy(text) {
		return nil, errNoJournal
	}
	n := 0
	for line := range bytes.Lines(text[:j.size]) {
		if n++; n == 1 {
			err = head.check(line)
		} else {
			err = j.read(line)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := j.cut(); err != nil {
		return nil, err
	}
	if n == 0 {
		err = j.write(head)
	}
	return j, err
}

var errNoJournal = errors.New("not a journal of a bench: set another file")

// begunBy reports whether a text without a line end may be the incomplete first line of a killed bench
// of this name.
func (h journalHead) begunBy(text []byte) bool {
	begin := fmt.Appendf(nil, `{"bench":%q,"seed":`, h.Bench)
	return bytes.HasPrefix(begin, text) || bytes.HasPrefix(text, begin)
}

// readHead reads the first line. A file with any other first line is not a journal.
func readHead(line []byte) (h journalHead, err error) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if d.Decode(&h) != nil || h.Bench == "" {
		return h, errNoJournal
	}
	return h, nil
}

// check compares the journal's first line with the current options.
func (h journalHead) check(line []byte) error {
	was, err := readHead(line)
	if was.Commit = h.Commit; err != nil || was == h {
		return err
	}
	return fmt.Errorf("the journal is of bench %s, --seed %d, --quick %v, but this is %s, %d, %v: set another file, or use the options of the journal",
		was.Bench, was.Seed, was.Quick, h.Bench, h.Seed, h.Quick)
}

// JournalSeed returns the seed of the journal at a path; 0 is none.
func JournalSeed(path string) (uint64, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	var h journalHead
	if line, _, ok := bytes.Cut(text, []byte("\n")); ok && err == nil {
		h, err = readHead(line)
	}
	if err != nil {
		return 0, fmt.Errorf("journal %s: %w", path, err)
	}
	return h.Seed, nil
}

func (j *journal) read(line []byte) error {
	var l journalLine
	if err := json.Unmarshal(line, &l); err != nil {
		return err
	}
	j.took += l.Seconds
	if l.Case == "" {
		return nil
	}
	for _, s := range l.Sheets {
		s.Sheet.notes, s.Sheet.unusable = s.Notes, s.Unusable
	}
	j.have[journalKey{l.Case, l.Run}] = l
	return nil
}

// find returns a run that the journal has, unless it is of another drawn case with the same name, or
// of uncommitted changes: they may have been others.
func (j *journal) find(r *Run) bool {
	if j == nil {
		return false
	}
	l, ok := j.have[journalKey{r.Case, r.N}]
	if !ok || l.Drawn != r.drawn || strings.HasSuffix(l.Commit, "+") {
		return false
	}
	for _, s := range l.Sheets {
		s.Sheet.mu = r.mu
		if l.Commit != j.commit {
			s.Sheet.Commit = l.Commit
		}
		r.sheets = append(r.sheets, s.Sheet)
		r.taken = taken{s.Others, s.Stolen, s.Stall, s.Starved}
	}
	r.plots = l.Plots
	return true
}

// add appends a run. A run that failed, or in which a peer failed, is not appended, so that it is
// repeated.
func (j *journal) add(r *Run) error {
	if j == nil || r.failure != "" || slices.ContainsFunc(r.sheets, func(s *Sheet) bool { return s.Missing != "" }) {
		return nil
	}
	l := journalLine{Case: r.Case, Run: r.N, Commit: j.commit, Drawn: r.drawn, Plots: r.plots}
	for _, s := range r.sheets {
		l.Sheets = append(l.Sheets, journalSheet{s, s.notes, s.unusable})
	}
	return j.write(l)
}

func (j *journal) write(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	n, err := j.file.Write(append(line, '\n'))
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		return errors.Join(err, j.cut())
	}
	j.size += int64(n)
	return nil
}

// cut removes an incomplete line, so that the next line does not follow it. If that fails the journal
// is closed.
func (j *journal) cut() error {
	err := j.file.Truncate(j.size)
	if err == nil {
		_, err = j.file.Seek(j.size, io.SeekStart)
	}
	if err != nil {
		j.file.Close()
	}
	return err
}

// end closes the journal after an invocation of so many seconds, and returns the total.
func (j *journal) end(seconds float64) (all float64, err error) {
	if j == nil {
		return seconds, nil
	}
	return j.took + seconds, errors.Join(j.write(journalLine{Seconds: seconds}), j.file.Close())
}
