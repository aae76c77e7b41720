package service

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/internal/peerauth"
	"headgate.dev/headgate/relay"
	relayhost "headgate.dev/headgate/relay/host"
)

// The answer has the relay agents that are running. One that was killed is left out; one that does not answer is an
// error, and hides no other.
func TestRelays(t *testing.T) {
	dir := "/run/headgate/relay"
	if os.Geteuid() != 0 {
		run := t.TempDir()
		t.Setenv("XDG_RUNTIME_DIR", run)
		dir = filepath.Join(run, "headgate", "relay")
	}
	name := func(what string) string { return fmt.Sprintf("relays-test-%d-%s", os.Getpid(), what) }
	query := func() (names []string, failed string) {
		t.Helper()
		var answer *agents.RelaysAnswer
		if err := relayStates(t.Context(), nil, func(a *agents.RelaysAnswer) { answer = a }); err != nil {
			t.Fatal(err)
		}
		var all []relayhost.Status
		if err := json.Unmarshal(answer.States, &all); err != nil || all == nil {
			t.Fatalf("%s: %v", answer.States, err)
		}
		for _, s := range all {
			if strings.HasPrefix(s.Agent, name("")) { // not one of this machine
				names = append(names, s.Agent)
			}
		}
		return names, answer.Error
	}
	if names, failed := query(); names != nil || strings.Contains(failed, name("")) {
		t.Errorf("without a relay agent: %v, %s", names, failed)
	}

	auth, err := relayhost.NewAuth(peerauth.Credentials{Key: []byte(strings.Repeat("k", 16))}, false)
	if err != nil {
		t.Fatal(err)
	}
	exit := relay.Exit{Address: netip.MustParseAddrPort("127.0.0.1:1"), Paths: []relay.Path{{Name: "only", Streams: 1}}}
	ctx, stop := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- relayhost.Run(ctx, relay.Policy{Name: name("runs"), Exits: []relay.Exit{exit}}, auth, slog.New(slog.DiscardHandler), func() { close(ready) })
	}()
	<-ready
	socket := func(what string) *net.UnixListener {
		path := filepath.Join(dir, name(what)+".sock")
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		t.Cleanup(func() { os.Remove(path) })
		return l
	}
	socket("killed").Close()
	hangs := socket("hangs")
	began := time.Now()
	names, failed := query()
	if took := time.Since(began); took > relayTimeout+time.Second/2 {
		t.Errorf("the answer took %v", took)
	}
	if !slices.Equal(names, []string{name("runs")}) || !strings.Contains(failed, name("hangs")+": no answer within 2s") || strings.Contains(failed, name("killed")) {
		t.Errorf("%v, %s", names, failed)
	}
	hangs.Close()
	var list string
	if err := relayEnded(t.Context(), &agents.RelayEndedQuery{Relay: name("runs")}, func(a *agents.RelayEndedAnswer) { list = string(a.Connections) }); err != nil || list != "[]" {
		t.Errorf("ended connections: %q, %v", list, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if names, failed := query(); names != nil || strings.Contains(failed, name("")) {
		t.Errorf("after its end: %v, %s", names, failed)
	}
	for _, of := range []string{name("runs"), name("killed"), "../relay/" + name("killed")} {
		if err := relayEnded(t.Context(), &agents.RelayEndedQuery{Relay: of}, nil); err == nil || err.Error() != "relay agent "+of+" is not running on this host" {
			t.Errorf("ended connections of %s: %v", of, err)
		}
	}
}
