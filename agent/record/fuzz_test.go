package record

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"headgate.dev/headgate/usage"
)

// FuzzRecord: files with any content give the record that is good in them, to which readings are added.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"minute":29000000,"at":"2026-01-01T00:00:00Z","read":{"eth0":{"out/web":{"Bytes":1}}},"usage":{"eth0":{"out/web":{"delivered_bytes":1}}},"late":{"eth1":"2026-01-01T00:00:00Z"}}`))
	f.Add([]byte("{\"minute\":29000000,\"dev\":\"eth0\",\"groups\":{\"out/web\":{\"delivered_bytes\":1}}}\n{\"minute\":"))
	f.Add([]byte(`{"minute":-1,"read":{"eth0":null},"usage":{"eth0":null}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		at := time.Date(2026, 1, 1, 0, 0, 30, 0, time.UTC)
		for _, name := range []string{"current.json", at.Format(time.DateOnly) + ".jsonl"} {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r, err := Open(dir)
		if err != nil {
			t.Fatalf("the record does not open: %v", err)
		}
		if _, err := r.Usage(at.Add(-time.Hour), at); err != nil {
			t.Errorf("usage: %v", err)
		}
		for n := range 3 {
			if err := r.Add(at.Add(time.Duration(n)*40*time.Second), map[string][]usage.Direction{"eth0": {{Name: "out"}}}); err != nil {
				t.Fatalf("a reading: %v", err)
			}
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}
