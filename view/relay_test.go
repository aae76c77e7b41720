package view

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"headgate.dev/headgate/internal/golden"
	"headgate.dev/headgate/relay/host"
	"headgate.dev/headgate/relay/stripe"
)

var relayBegan = time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)

func relayStatus() host.Status {
	at := netip.MustParseAddrPort
	s := host.Status{
		Agent: "east", Began: relayBegan, At: relayBegan.Add(time.Hour + 2*time.Minute + 400*time.Millisecond),
		Exits: []host.PeerStatus{{Address: "192.0.2.2:8424", Paths: []host.PathStatus{
			{Name: "fibre", Sent: 3 << 30, Received: 1 << 20, Streams: []host.StreamStatus{
				{Number: 1, State: host.StreamOpen, RTT: 54 * time.Millisecond, EstimatedRate: 500e6, SendRate: 480e6, ReceiveRate: 1e3, Unsent: 64 << 10, Unacknowledged: 3 << 20, Sent: 2 << 30, Received: 1 << 20},
				{Number: 3, State: host.StreamSuspect, RTT: 61 * time.Millisecond, Sent: 1 << 20},
				{Number: 4, State: host.StreamRetired, RTT: 60 * time.Millisecond},
			}},
			{Name: "radio", Streams: []host.StreamStatus{{State: host.StreamClosed, Error: "dial tcp 198.51.100.2:8424: connect: connection refused"}}},
		}}},
		Entries: []host.PeerStatus{{Address: "203.0.113.7", Paths: []host.PathStatus{{Name: "203.0.113.7", Streams: []host.StreamStatus{{Number: 2, State: host.StreamSuspect, RTT: time.Millisecond}}}}}},
		Connections: []host.ConnectionStatus{
			{Client: at("10.1.0.5:40000"), Destination: at("10.2.0.5:22"), Exit: "192.0.2.2:8424", State: stripe.Established, Age: 3 * time.Second, SendRate: 1e6, Sent: 4096, Waiting: 1024, Unacknowledged: 1024},
			{Client: at("10.1.0.6:40001"), Destination: at("[2001:db8::5]:443"), Exit: "192.0.2.2:8424", State: stripe.Closing, Age: 75 * time.Minute, SendRate: 480e6, Sent: 3 << 30, Received: 1 << 20, Unread: 7, Reordering: 2 << 20},
		},
		Total: host.TotalStatus{Streams: 4, Connections: 2, Ended: 7, Failed: 1, SendRate: 481e6, ReceiveRate: 1e3},
	}
	for _, peers := range [][]host.PeerStatus{s.Exits, s.Entries} {
		for _, p := range peers {
			for n := range p.Paths {
				p.Paths[n].PathSummary = host.Summarize(p.Paths[n].Streams)
			}
		}
	}
	return s
}

// The status has a table of paths, with their streams if asked for, and one of connections; ended connections have
// their paths.
func TestWriteRelay(t *testing.T) {
	var b strings.Builder
	if err := WriteRelay(&b, relayStatus(), false); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/relay.txt", b.String())
	b.Reset()
	if err := WriteRelay(&b, relayStatus(), true); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/relay-streams.txt", b.String())
	b.Reset()
	if err := WriteRelayAgents(&b, []host.Status{relayStatus(), {Agent: "forward-8022"}}); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/relay-agents.txt", b.String())
	b.Reset()
	if err := WriteRelay(&b, relayStatus().Bound(1, 1, 0), true); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/relay-bounded.txt", b.String())
	b.Reset()
	if err := WriteRelay(&b, host.Status{Agent: "new"}, false); err != nil || b.String() != "agent new for 0s: 0 connections, 0 streams, sending 0, receiving 0; 0 ended, 0 of them failed\n" {
		t.Errorf("%q, %v", b.String(), err)
	}
	local := time.Local
	time.Local = time.UTC
	defer func() { time.Local = local }()
	ended := relayStatus().Connections
	ended[0].State, ended[0].Began, ended[0].Paths = stripe.Ended, relayBegan, []stripe.PathBytes{{Path: "fibre", Sent: 750}, {Path: "radio", Received: 250}}
	ended[0].DirectRate, ended[0].Gain = 6.8e6, 4.65
	ended[1].State, ended[1].Began, ended[1].Error = host.Failed, relayBegan, "read: connection reset by peer"
	b.Reset()
	if err := WriteRelayEnded(&b, ended); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/relay-ended.txt", b.String())
}

// The screen has the connection with the highest rate first, and keeps the last state after an error.
func TestRelayScreen(t *testing.T) {
	var m tea.Model = NewRelayScreen(nil, time.Second, plainTheme())
	m, _ = m.Update(tea.WindowSizeMsg{Width: 60, Height: 30})
	m, _ = m.Update(observation[host.Status]{state: relayStatus()})
	text := m.View()
	if first, second := strings.Index(text, "10.1.0.6:40001"), strings.Index(text, "10.1.0.5:40000"); first < 0 || second < first {
		t.Errorf("the screen is\n%s", text)
	}
	for _, line := range strings.Split(text, "\n") {
		if len([]rune(line)) > 60 {
			t.Errorf("%q is longer than 60", line)
		}
	}
	m, _ = m.Update(observation[host.Status]{err: host.ErrNotRunning})
	if text := m.View(); !strings.Contains(text, "agent east") || !strings.Contains(text, host.ErrNotRunning.Error()) {
		t.Errorf("the screen is\n%s", text)
	}
}
