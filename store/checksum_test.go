package store

import (
	"encoding/json"
	"errors"
	"testing"

	"pgregory.net/rapid"
)

// Each change of one bit of a document or of its key is found, and an earlier version reads a document with a checksum.
func TestChecksum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := Key(Hosts, rapid.String().Draw(t, "name"))
		text, err := json.Marshal(rapid.String().Draw(t, "text"))
		if err != nil {
			t.Fatal(err)
		}
		stored := withChecksum(key, text)
		if got, err := withoutChecksum(key, stored); err != nil || string(got) != string(text) {
			t.Fatalf("%q was stored as %q, is read as %q, %v", text, stored, got, err)
		}
		var before, after string
		if json.Unmarshal(text, &before) != nil || json.Unmarshal(stored, &after) != nil || before != after {
			t.Fatalf("%q is read by an earlier version as %q", before, after)
		}
		if got, err := withoutChecksum(key, text); err != nil || string(got) != string(text) {
			t.Fatalf("%q of an earlier version is read as %q, %v", text, got, err)
		}
		at, bit := rapid.IntRange(0, len(stored)-1).Draw(t, "at"), byte(1)<<rapid.IntRange(0, 7).Draw(t, "bit")
		stored[at] ^= bit
		if got, err := withoutChecksum(key, stored); err == nil && json.Valid(got) {
			t.Fatalf("with an inverted bit %d it is read as %q", at, got)
		}
		stored[at] ^= bit
		if _, err := withoutChecksum(key+"x", stored); !errors.Is(err, ErrDamaged) {
			t.Fatalf("below another key: %v", err)
		}
	})
}
