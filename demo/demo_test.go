package demo

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/demo/scenario"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/golden"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/view"
)

// TestShowCommand: a shown command fits a terminal, and is valid in a shell.
func TestShowCommand(t *testing.T) {
	var b strings.Builder
	p := &deployment{stage: &lineStage{w: &b}}
	args := []string{"assign", "shop/export", "--server", "shop", "--host", "host1", "--dev", "uplink", "--output", "table", "--conn", "tcp 10.0.0.1:9000 10.0.6.2:40000"}
	p.showCommand(scenario.Controller, args, " &")
	for line := range strings.Lines(b.String()) {
		if len(line) > 81 || strings.Count(line, "'")%2 != 0 {
			t.Errorf("line of %d cells: %s", len(line)-1, line)
		}
	}
	typed := strings.Join(strings.Fields(strings.ReplaceAll(b.String(), "\\\n", "")), " ")
	if want := "controller$ headgate " + shellWords(args) + " &"; typed != want {
		t.Errorf("shown: %q, want %q", typed, want)
	}
}

// TestRequestText: answers of the service are formatted for the user.
func TestRequestText(t *testing.T) {
	for answer, want := range map[string]string{
		`{"path":"shop","guaranteed_bps":45000000,"unallocated_bps":15000000,"groups":[{"name":"web"}]}`: "200 guaranteed 45Mbit, 15Mbit unallocated",
		`{"path":"shop/web","guaranteed_bps":10000000,"unallocated_bps":10000000}`:                       "200 guaranteed 10Mbit",
		`{"title":"no","detail":"group not found"}`:                                                      "200 group not found",
		`oops`: "200",
	} {
		if got := (Request{Status: 200, Answer: []byte(answer)}).text(); got != want {
			t.Errorf("%s: %q, want %q", answer, got, want)
		}
	}
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		received, guarantee, demand, share float64
		want                               Verdict
	}{
		{40, 40, 1000, 42, VerdictOK},
		{38.1, 40, 1000, 39, VerdictOK},
		{37.9, 40, 1000, 42, VerdictMissed},
		{38.1, 40, 1000, 42, VerdictLow},
		{8, 40, 8, 8, VerdictOK},
		{7.5, 40, 8, 8, VerdictMissed},
		{0, 40, 0, 0, VerdictOK},
		{100, 0, 1000, 90, VerdictOK},
	} {
		if got := verdictOf(c.received, c.guarantee, c.demand, c.share, 0.05); got != c.want {
			t.Errorf("%+v: verdict %q", c, got)
		}
	}
}

// resultForTest is a result with one of each case of the report.
func resultForTest() *Result {
	r := &Result{Engine: group.HTB, Tolerance: 0.05, Returned: map[string]float64{"out": 12.4, "in": 0.2}, CleanedUp: true, OK: true}
	r.Moved.Connection, r.Moved.Before, r.Moved.After = "tcp 10.0.0.1:9000 10.0.6.2:40000", 4.9e6, 11.3e6
	r.Changes = []Change{{"35Mbit", 9.4}, {"20Mbit", 7.6}}
	r.Usage = []Usage{
		{Tenant: "media", Host: "host1", Direction: "out", Group: "media/storage", Guaranteed: 251_200_000, Borrowed: 1_440_000, Lent: 900_000, Delivered: 250_000_000, Received: 249_900_000},
		{Tenant: "shop", Host: "host3", Direction: "in", Group: "shop", Guaranteed: 1_000_000, Unmet: 12},
	}
	phase := PhaseResult{Phase: 2, Title: "overload", Seconds: 14, Counted: 9}
	for _, d := range []string{"out", "in"} {
		phase.Groups = append(phase.Groups,
			GroupResult{Host: "host1", Direction: d, Group: "media/storage", Guarantee: 40e6, Demand: 1e12, Share: 41.6e6, Received: 41.55e6, Retransmitted: 12, Verdict: VerdictOK},
			GroupResult{Host: "host1", Direction: d, Group: "shop", Guarantee: 15e6, Demand: 10e6, Share: 10e6, Received: 10e6, Inside: true, Verdict: VerdictOK},
		)
	}
	r.Phases = []PhaseResult{phase}
	r.Others = PhaseResult{Title: "the other hosts", Seconds: 60, Counted: 50, Groups: []GroupResult{
		{Host: "host2", Direction: "out", Group: "media", Guarantee: 5e6, Demand: 1e12, Share: 6.8e6, Received: 6.7e6, Verdict: VerdictOK},
		{Host: "host3", Direction: "out", Group: "media", Guarantee: 5e6, Demand: 3e6, Share: 3e6, Received: 3e6, Inside: true, Verdict: VerdictOK},
	}}
	return r
}

func TestReport(t *testing.T) {
	var b strings.Builder
	good := resultForTest()
	bad := resultForTest()
	bad.Phases[0].Groups[0].Received, bad.Phases[0].Groups[0].Verdict = 30e6, VerdictMissed
	bad.Phases[0].Groups[2].Received, bad.Phases[0].Groups[2].Verdict = 39e6, VerdictLow
	bad.Phases[0].Groups[3].Lost, bad.Phases[0].Groups[3].Drops = 2, 1
	bad.Returned = map[string]float64{"in": 3}
	bad.Disturbed = "meanwhile other programs used 27 % of a processor"
	bad.CleanedUp, bad.Left, bad.OK = false, []string{"network demo-1", "/run/netns/hg-demo-1-server"}, false
	stays := resultForTest()
	stays.CleanedUp, stays.Kept = false, "demo-1"
	for _, r := range []*Result{good, bad, stays} {
		if err := r.Write(&b); err != nil {
			t.Fatal(err)
		}
	}
	for line := range strings.Lines(b.String()) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 80 {
			t.Errorf("line of %d cells: %s", n, line)
		}
	}
	golden.Compare(t, "testdata/report.txt", b.String())
}

// stateForTest returns the state of the demo's device with bytes in each group's counter.
func stateForTest(t *testing.T, at time.Time, bytes uint64) shaper.State {
	t.Helper()
	set, err := config.Parse("host.yaml", []byte(scenario.New(group.HTB, true).Config(scenario.Hosts[0], scenario.Export)))
	if err != nil {
		t.Fatal(err)
	}
	i := set.Interfaces[0]
	s := shaper.State{Dev: scenario.Dev, Engine: group.HTB, At: at, Plan: shaper.Plan{Dev: scenario.Dev, Out: i.OutTree, In: i.InTree}}
	count := func(tree *group.Tree) *shaper.DirectionState {
		d := &shaper.DirectionState{Control: shaper.GroupState{Path: "(control)"}}
		for _, n := range tree.Nodes {
			d.Groups = append(d.Groups, shaper.GroupState{Path: n.Path, Class: "1:10", Guarantee: n.Guarantee, Ceiling: n.Ceiling, Bytes: bytes})
		}
		return d
	}
	s.Out, s.In = count(i.OutTree), count(i.InTree)
	return s
}

func TestLineStage(t *testing.T) {
	var b strings.Builder
	s := &lineStage{w: &b}
	s.say("hello")
	s.phase(1, scenario.New(group.HTB, false).Phases[scenario.Overload])
	at := time.Now()
	s.began = at
	for i := range 5 {
		s.state(stateForTest(t, at.Add(time.Duration(i)*readInterval), uint64(i)*62_500))
	}
	want := `hello

[2/7] overload, 12s
  All groups have unlimited demand, and backup sends 30Mbit of UDP that does
  not slow down. Each tenant gets its guarantee, and so does each group in it.
  The unallocated part of a tenant's guarantee is lent to the tenant's own
  groups first.
   1.0s  storage 1.0/1.0  backup 1.0/1.0  export 1.0/1.0  web 1.0/1.0
   2.0s  storage 1.0/1.0  backup 1.0/1.0  export 1.0/1.0  web 1.0/1.0
`
	if b.String() != want {
		t.Errorf("got\n%s", b.String())
	}
}

// TestLivePanel sends messages to the panel, as on a terminal of 80 by 24.
func TestLivePanel(t *testing.T) {
	t.Setenv("LC_ALL", "C.UTF-8")
	p := livePanel{theme: view.NewTheme(io.Discard), tracker: &view.Tracker{}, width: 80, height: 24, cancel: make(chan struct{})}
	send := func(m tea.Msg) tea.Cmd {
		model, cmd := p.Update(m)
		p = model.(livePanel)
		return cmd
	}
	send(tea.WindowSizeMsg{Width: 80, Height: 24})
	if p.View() != "\ncreating the network" {
		t.Errorf("at first:\n%s", p.View())
	}
	began := time.Unix(1700000000, 0)
	send(phaseMessage{1, scenario.New(group.HTB, false).Phases[scenario.Overload], began})
	send(printed{})
	for i := range 4 {
		send(stateForTest(t, began.Add(time.Duration(i)*readInterval), uint64(i)*62_500))
	}
	p.now = began.Add(7 * time.Second)
	golden.Compare(t, "testdata/panel.txt", p.View()+"\n")
	send(tea.WindowSizeMsg{Width: 60, Height: 10})
	if n := strings.Count(p.View(), "\n") + 1; n > 7 {
		t.Errorf("%d lines in a window of 10", n)
	}
	send(tea.KeyMsg{Type: tea.KeyCtrlC})
	select {
	case <-p.cancel:
	default:
		t.Error("Ctrl-C does not stop the demo")
	}
	send(tea.KeyMsg{Type: tea.KeyCtrlC}) // must not close the channel twice
	if !strings.Contains(p.View(), "cleaning up") {
		t.Errorf("while stopping:\n%s", p.View())
	}
	if cmd := send(quitMessage{}); p.View() != "" || cmd == nil {
		t.Errorf("at the end:\n%s", p.View())
	}
}

// TestLivePanelPrintsInOrder: a second text waits until the first is printed, and the
// quit waits for all texts.
func TestLivePanelPrintsInOrder(t *testing.T) {
	p := livePanel{width: 20, height: 24, tracker: &view.Tracker{}}
	send := func(m tea.Msg) tea.Cmd {
		model, cmd := p.Update(m)
		p = model.(livePanel)
		return cmd
	}
	if send(said{"one"}) == nil {
		t.Fatal("the first text is not printed")
	}
	if send(said{"two"}) != nil || send(quitMessage{}) != nil {
		t.Fatal("the second text does not wait")
	}
	if send(printed{}) == nil || len(p.text) != 0 {
		t.Fatal("the second text is not printed")
	}
	cmd := send(printed{})
	if cmd == nil {
		t.Fatal("no command after the last text")
	}
	if _, ok := cmd().(tea.QuitMsg); !ok {
		t.Error("the last command is not tea.Quit")
	}
}

func TestFolded(t *testing.T) {
	p := livePanel{width: 20}
	for text, want := range map[string]string{
		"short":                         "short",
		"  a line that is too long":     "  a line that is|    too long",
		"xxxxxxxxxxxxxxxxxxxxxxxxx end": "xxxxxxxxxxxxxxxxxx|xxxxxxx|  end",
	} {
		if got := strings.Join(p.folded(text), "|"); got != want {
			t.Errorf("folded(%q): %q, want %q", text, got, want)
		}
	}
}

// TestLiveStageSurvivesItsScreen: without a terminal the demo runs to its end, and
// show returns the demo's error.
func TestLiveStageSurvivesItsScreen(t *testing.T) {
	s := newLiveStage(strings.NewReader(""), io.Discard, 80)
	broken := errors.New("broken")
	err := s.show(context.Background(), func(ctx context.Context) error {
		s.say("one", "two")
		s.status("three")
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("show: %v, want %v", err, broken)
	}
}
