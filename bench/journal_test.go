package bench

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// counted is a bench that counts how often each of its cases is measured; the second fails the first
// time, although its peer succeeds.
func counted(ran map[string]int) Bench {
	b := sample()
	b.Cases = b.Cases[:2]
	for i, c := range b.Cases {
		b.Cases[i].Run = func(ctx context.Context, r *Run) error {
			if ran[c.Name]++; ran["speed"] == 1 && c.Name == "speed" {
				return errors.New("the device is gone")
			}
			err := c.Run(ctx, r)
			for _, s := range r.sheets {
				s.Missing = ""
			}
			return err
		}
	}
	return b
}

// A bench that was killed while it wrote a line is resumed, and its result is that of an uninterrupted
// one.
func TestJournal(t *testing.T) {
	ran, file := map[string]int{}, filepath.Join(t.TempDir(), "journal")
	run(t, counted(ran), Options{Journal: file})
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	torn := append(bytes.Clone(text), `{"case":"speed","sh`...)
	if err := os.WriteFile(file, torn, 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		again := run(t, counted(ran), Options{Journal: file})
		if ran["share"] != 1 || ran["speed"] != 2 {
			t.Errorf("measured %v times, want share once, and speed once after it failed", ran)
		}
		var got, want strings.Builder
		whole := run(t, counted(map[string]int{"speed": 1}), Options{})
		for _, r := range []struct {
			*Result
			to *strings.Builder
		}{{again, &got}, {whole, &want}} {
			for _, s := range r.Sheets {
				s.Starved = 0
			}
			if err := r.WriteJSON(r.to); err != nil {
				t.Fatal(err)
			}
			r.markdown(r.to, sample())
		}
		if got.String() != want.String() {
			t.Errorf("the result is\n%s\nwant\n%s", &got, &want)
		}
		if len(again.plots) != len(whole.plots) {
			t.Errorf("%d plots, want %d", len(again.plots), len(whole.plots))
		}
	}
	if s, err := JournalSeed(file); s != 42 || err != nil {
		t.Errorf("its seed is %d, %v", s, err)
	}
}

func TestJournalOfAnother(t *testing.T) {
	file := filepath.Join(t.TempDir(), "journal")
	run(t, counted(map[string]int{}), Options{Journal: file})
	before, _ := os.ReadFile(file)
	other := counted(map[string]int{})
	other.Seed = 7
	if _, err := other.Run(t.Context(), Options{Journal: file, Environment: &environment}); err == nil || !strings.Contains(err.Error(), "--seed 42") {
		t.Errorf("with another seed: %v", err)
	}
	if after, _ := os.ReadFile(file); !bytes.Equal(before, after) {
		t.Error("the journal was changed")
	}
}

// A file that is not a journal is left unchanged.
func TestNoJournal(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	for _, text := range []string{
		"not JSON\n", "a letter without an end of line", "{}\n", "{\n", "\n", "\x00", `{"bench":"another","seed":42,`,
		`{"bench":"sample","smoke":true,"seed":42}`, `{"bench":"sample","smoke":true,"seed":42}` + "\n", // results, without spaces
	} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := counted(map[string]int{}).Run(t.Context(), Options{Journal: file, Environment: &environment}); !errors.Is(err, errNoJournal) || !strings.Contains(err.Error(), file) {
			t.Errorf("%q: %v", text, err)
		}
		if after, _ := os.ReadFile(file); string(after) != text {
			t.Errorf("%q is %q now", text, after)
		}
		if _, err := JournalSeed(file); strings.HasSuffix(text, "\n") && (!errors.Is(err, errNoJournal) || !strings.Contains(err.Error(), file)) {
			t.Errorf("the seed of %q: %v", text, err)
		}
	}
}

// A process that was killed while it wrote the first line has created a journal.
func TestBegunJournal(t *testing.T) {
	file := filepath.Join(t.TempDir(), "journal")
	for _, text := range []string{"", `{`, `{"bench":"sam`, `{"bench":"sample","seed":7,"quick":fal`} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		ran := map[string]int{"speed": 1}
		for range 2 {
			run(t, counted(ran), Options{Journal: file})
		}
		if ran["share"] != 1 {
			t.Errorf("after %q: measured %v times, want share once", text, ran)
		}
	}
}

// An incomplete line is removed, and later lines are complete.
func TestFullDisk(t *testing.T) {
	file := filepath.Join(t.TempDir(), "journal")
	head := journalHead{Bench: "sample", Seed: 42}
	j, err := openJournal(file, head)
	if err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	full := was
	full.Cur = uint64(j.size) + 5
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &full); err != nil {
		t.Fatal(err)
	}
	err = j.write(journalLine{Case: "lost"})
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	if err == nil {
		t.Error("no error for a full disk")
	}
	if err := j.write(journalLine{Case: "kept"}); err != nil {
		t.Fatal(err)
	}
	if _, err := j.end(1); err != nil {
		t.Fatal(err)
	}
	j, err = openJournal(file, head)
	if err != nil {
		t.Fatal(err)
	}
	defer j.file.Close()
	if _, ok := j.have[journalKey{name: "kept"}]; !ok || len(j.have) != 1 || j.took != 1 {
		t.Errorf("it has %v, and took %v s", j.have, j.took)
	}
}

// A run in which only a peer failed is measured again.
func TestJournalWithoutAPeer(t *testing.T) {
	file, ran := filepath.Join(t.TempDir(), "journal"), 0
	b := sample()
	b.Cases = b.Cases[:1]
	whole := b.Cases[0].Run
	b.Cases[0].Run = func(ctx context.Context, r *Run) error {
		if ran++; ran == 1 {
			r.Sheet("plain").Fail(errors.New("the peer is not installed"))
			return nil
		}
		return whole(ctx, r)
	}
	for range 3 {
		run(t, b, Options{Journal: file})
	}
	if ran != 2 {
		t.Errorf("measured %d times, want once more than the peer failed", ran)
	}
}

// Runs of another commit are kept, and the result names it. With uncommitted changes it is unknown
// whether they are those of the earlier runs, and a case that is drawn differently is another one.
func TestJournalOfAnotherCommit(t *testing.T) {
	file, ran := filepath.Join(t.TempDir(), "journal"), map[string]int{"speed": 1}
	at := func(commit string, b Bench) *Result {
		t.Helper()
		e := environment
		e.Commit = commit
		r, err := b.Run(t.Context(), Options{Journal: file, Environment: &e})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	at("0123456789ab", counted(ran))
	later := at("aaaaaaaaaaaa", counted(ran))
	if ran["share"] != 1 {
		t.Errorf("measured %v times, want share once", ran)
	}
	if got := claim(t, later, "share/a").Notes; !slices.Contains(got, "run 1: measured at commit 0123456789ab") {
		t.Errorf("its notes are %q", got)
	}
	if got := claim(t, at("0123456789ab", counted(ran)), "share/a").Notes; len(got) != len(claim(t, later, "share/a").Notes)-1 {
		t.Errorf("at the same commit its notes are %q", got)
	}
	drawn := counted(ran)
	drawn.Cases[0].Drawn = "another rate"
	at("aaaaaaaaaaaa+", drawn)
	if ran["share"] != 2 {
		t.Errorf("measured %v times, want a case that was drawn differently again", ran)
	}
	at("aaaaaaaaaaaa+", drawn)
	if ran["share"] != 3 {
		t.Errorf("measured %v times, want what uncommitted changes measured again", ran)
	}
}

func TestJournalOfTwo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "journal")
	o := Options{Journal: file, Environment: &environment}
	b := counted(map[string]int{})
	b.Cases = b.Cases[:1]
	whole := b.Cases[0].Run
	b.Cases[0].Run = func(ctx context.Context, r *Run) error {
		if _, err := counted(map[string]int{}).Run(ctx, o); err == nil || !strings.Contains(err.Error(), "another bench") {
			t.Errorf("a second one: %v", err)
		}
		return whole(ctx, r)
	}
	for range 2 { // the lock is released at its end
		run(t, b, o)
	}
}

// A case with a minimum number of runs has them, but not in a smoke run.
func TestRunsOfACase(t *testing.T) {
	for _, c := range []struct {
		Options
		want map[string]int
	}{
		{Options{}, map[string]int{"share": 3, "speed": 1}},
		{Options{Runs: 2}, map[string]int{"share": 3, "speed": 2}},
		{Options{Quick: true}, map[string]int{"share": 1, "speed": 1}},
	} {
		ran := map[string]int{}
		b := counted(ran)
		b.Cases[0].Runs = 3
		r := run(t, b, c.Options)
		if !maps.Equal(ran, c.want) {
			t.Errorf("%+v: measured %v times, want %v", c.Options, ran, c.want)
		}
		if got := claim(t, r, "share/a"); got.N != c.want["share"] {
			t.Errorf("%+v: a value of %d runs", c.Options, got.N)
		}
	}
}
