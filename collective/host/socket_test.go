package host

import (
	"errors"
	"fmt"
	"net"
	"os"
	"reflect"
	"testing"

	"headgate/lab/labtest"
)

// Whoever asks hears the newest state; nobody answers when the program has gone, and a killed
// one's socket is in nobody's way.
func TestTell(t *testing.T) {
	labtest.NeedRoot(t)
	name := fmt.Sprintf("test-%d", os.Getpid())
	if _, err := Ask(name); !errors.Is(err, ErrNotRunning) {
		t.Errorf("with no program: %v", err)
	}
	if err := os.MkdirAll(socketDir, 0o755); err != nil {
		t.Fatal(err)
	}
	killed, err := net.ListenUnix("unix", &net.UnixAddr{Name: socketPath(name)})
	if err != nil {
		t.Fatal(err)
	}
	killed.SetUnlinkOnClose(false)
	killed.Close()
	if _, err := Ask(name); !errors.Is(err, ErrNotRunning) {
		t.Errorf("of a killed program: %v", err)
	}
	teller, err := Tell(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]State{nil, {{Set: "db", Controlling: true, Connections: []ConnectionState{{ID: 7, Local: "192.0.2.1:5001", Needs: 4_800_000}}}}} {
		teller.Set(want)
		if got, err := Ask(name); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("it says %+v, %v, want %+v", got, err, want)
		}
	}
	if err := teller.Close(); err != nil {
		t.Error(err)
	}
	if _, err := Ask(name); !errors.Is(err, ErrNotRunning) {
		t.Errorf("after the end: %v", err)
	}
}
