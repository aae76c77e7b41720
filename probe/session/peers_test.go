package session

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/probe"
)

// Peers from a file are normalized.
func TestReadPeers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "peers")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("# peers\nAms.example.org\n\n[2001:db8::7]:5000 # lab\n")
	got, err := ReadPeers(file)
	want := []probe.Address{{Host: "ams.example.org", Port: 4950}, {Host: "2001:db8::7", Port: 5000}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	write("ams.example.org\na b\n")
	if _, err := ReadPeers(file); err == nil || !strings.HasPrefix(err.Error(), file+":2: ") {
		t.Errorf("a mistake in a file: %v", err)
	}
}
