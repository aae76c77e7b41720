package bench

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// counted is a bench that counts how often each of its cases is measured; the second fails
// the first time.
func counted(ran map[string]int) Bench {
	b := sample()
	b.Cases = b.Cases[:2]
	for i, c := range b.Cases {
		b.Cases[i].Run = func(ctx context.Context, r *Run) error {
			if ran[c.Name]++; ran["speed"] == 1 && c.Name == "speed" {
				return errors.New("the device is gone")
			}
			return c.Run(ctx, r)
		}
	}
	return b
}

// A bench goes on where it was killed, while it wrote a line, and its result is that of one
// that was not.
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
			t.Errorf("measured %v times, want share once, and speed once more than it failed", ran)
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
		t.Error("it was changed")
	}
	if err := os.WriteFile(file, []byte("not JSON\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := JournalSeed(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("of no journal: %v", err)
	}
}

// A case that wants several runs has them, but not in a smoke run.
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
