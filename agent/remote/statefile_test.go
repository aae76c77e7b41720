package remote

import (
	"bytes"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"headgate.dev/headgate/api/agents"
)

// A file that the disk has damaged in any way is the one before its last change, or the error is errDamaged; never is it something else. The damaged one is kept.
func TestDamagedStateFile(t *testing.T) {
	before := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	defer slog.SetDefault(before)
	type content map[string]int
	first, second := content{"a": 1}, content{"a": 2, "b": 3}
	rnd := rand.New(rand.NewPCG(1, 1))
	damage := map[string]func([]byte) []byte{
		"emptied": func([]byte) []byte { return nil },
		"cut":     func(b []byte) []byte { return b[:len(b)/2] },
		"zeroed":  func(b []byte) []byte { return make([]byte, len(b)) },
		"a page":  func(b []byte) []byte { return append(bytes.Clone(b), make([]byte, 4096)...) },
	}
	for range 200 {
		damage["flips"] = func(b []byte) []byte {
			b = bytes.Clone(b)
			for range 1 + rnd.IntN(3) {
				b[rnd.IntN(len(b))] ^= 1 << rnd.IntN(8)
			}
			return b
		}
		for how, do := range damage {
			name := filepath.Join(t.TempDir(), "state.json")
			for _, c := range []content{first, second} {
				if err := writeFile(name, c); err != nil {
					t.Fatal(err)
				}
			}
			whole, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			bad := do(whole)
			if bytes.Equal(bad, whole) {
				continue
			}
			if err := os.WriteFile(name, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			var got content
			// A flip in the key of the checksum makes it an unknown key of a file of an earlier version, whose content is right.
			if err := readFile(name, &got); err != nil || !maps.Equal(got, first) && !(how == "flips" && got["a"] == 2 && got["b"] == 3) {
				t.Fatalf("%s: %v, %v of %q", how, got, err, bad)
			}
			if maps.Equal(got, first) {
				if aside, err := os.ReadFile(name + damagedSuffix); err != nil || !bytes.Equal(aside, bad) {
					t.Fatalf("%s: the damaged file is %q, %v", how, aside, err)
				}
			}
			if err := os.Remove(name + previousSuffix); err != nil {
				t.Fatal(err)
			}
		}
		for how := range damage {
			if how != "flips" {
				delete(damage, how) // once
			}
		}
	}
	name := filepath.Join(t.TempDir(), "state.json")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var got content
	if err := readFile(name, &got); !errors.Is(err, errDamaged) || len(got) > 0 {
		t.Errorf("without a file before: %v, %v", got, err)
	}
	if err := readFile(name, &got); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the second time: %v", err)
	}
}

// A damaged desired state does not keep the agent from starting: it is the one before, or empty, and the controllers send what is missing.
func TestDamagedDesiredState(t *testing.T) {
	dir := t.TempDir()
	state, err := OpenIntent(dir)
	if err != nil {
		t.Fatal(err)
	}
	for n := int64(1); n <= 2; n++ {
		if _, err := state.Store(&agents.Desired{Fence: &agents.Fence{Epoch: 1, Revision: n}, Interfaces: []*agents.Interface{eth0(n, limited("20Mbit"))}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, left := range []int{1, 0} {
		if err := os.WriteFile(filepath.Join(dir, desiredFile), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if left == 0 {
			if err := os.Remove(filepath.Join(dir, desiredFile+previousSuffix)); err != nil {
				t.Fatal(err)
			}
		}
		if state, err = OpenIntent(dir); err != nil {
			t.Fatal(err)
		}
		if all, errs := state.Interfaces(); len(all) != left || len(errs) > 0 {
			t.Errorf("%v, %v, want %d interfaces", all, errs, left)
		}
		if r := state.Fence().Revision; r > 1 {
			t.Errorf("revision %d would refuse what the controllers send", r)
		}
	}
}
