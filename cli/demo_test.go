package cli

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"headgate/cli/view"
	"headgate/config"
	"headgate/group"
	"headgate/lab/traffic"
	"headgate/shaper"
	"headgate/unit"
)

// TestScenario: the demo's plain data hold together.
func TestScenario(t *testing.T) {
	for _, fast := range []bool{false, true} {
		s := newScenario(group.HTB, fast)
		if err := s.network("demo-1").Validate(); err != nil {
			t.Error(err)
		}
		for _, f := range s.flows {
			if err := f.Validate(); err != nil {
				t.Error(err)
			}
		}
		for i, p := range s.phases {
			if p.title == "" || p.says == "" {
				t.Errorf("phase %d says nothing", i+1)
			}
			if from, to := s.counted(i); from >= to || to > s.length() {
				t.Errorf("of phase %d %v to %v is counted", i+1, from, to)
			}
			// One must be able to read what is said while it goes on.
			if !fast && p.length < 8*time.Second {
				t.Errorf("phase %d takes only %v", i+1, p.length)
			}
		}
		if most := map[bool]time.Duration{true: 18 * time.Second, false: 70 * time.Second}[fast]; s.length() > most {
			t.Errorf("it takes %v", s.length())
		}
	}
}

// plans gives the trees of a phase, as headgate apply would.
func plans(t *testing.T, s scenario, phase int) (out, in group.Tree) {
	t.Helper()
	set, err := config.Parse("server.yaml", []byte(s.config(s.phases[phase].shares)))
	if err != nil {
		t.Fatal(err)
	}
	i := set.Interfaces[0]
	return *i.OutTree, *i.InTree
}

func TestScenarioConfig(t *testing.T) {
	s := newScenario(group.Quantum, false)
	set, err := config.Parse("server.yaml", []byte(s.config(s.phases[phaseQuiet].shares)))
	if err != nil {
		t.Fatal(err)
	}
	if i := set.Interfaces[0]; i.Dev != demoDev || i.Engine != group.Quantum || i.OutTree.Nodes[2].Ceiling != demoOut {
		t.Errorf("it is about %s, by %s, with a ceiling of %v", i.Dev, i.Engine, i.OutTree.Nodes[2].Ceiling)
	}
	s = newScenario(group.HTB, false)
	out, in := plans(t, s, phaseQuiet)
	after, _ := plans(t, s, phaseChange)
	for _, c := range []struct {
		what      string
		got, want unit.Rate
	}{
		{"out's limit", out.Limit, 100 * unit.Mbit}, {"in's limit", in.Limit, 80 * unit.Mbit},
		{"storage's guarantee", out.Nodes[0].Guarantee, 40 * unit.Mbit}, {"then", after.Nodes[0].Guarantee, 25 * unit.Mbit},
		{"web's guarantee", out.Nodes[1].Guarantee, 30 * unit.Mbit}, {"then", after.Nodes[1].Guarantee, 45 * unit.Mbit},
		{"backup's ceiling", in.Nodes[2].Ceiling, 12 * unit.Mbit},
		{"the bottleneck", demoOutReal, 101 * unit.Mbit}, {"the bottleneck's other way", demoInReal, 80800 * unit.Kbit},
	} {
		if c.got != c.want {
			t.Errorf("%s is %v, want %v", c.what, c.got, c.want)
		}
	}
}

// TestScenarioFlowsFollowTheRules: what a flow is said to belong to is what the
// configuration makes of its packets.
func TestScenarioFlowsFollowTheRules(t *testing.T) {
	s := newScenario(group.HTB, true)
	out, in := plans(t, s, phaseQuiet)
	for _, f := range s.flows {
		tree := out
		if f.direction == "in" {
			tree = in
		}
		p := group.Packet{Proto: group.TCP, SPort: f.SrcPort, DPort: f.DstPort, DSCP: f.DSCP}
		if f.Protocol == traffic.UDP {
			p.Proto = group.UDP
		}
		if _, leaf := tree.Classify(p); tree.Nodes[leaf].Path != f.groupIn(phaseQuiet) {
			t.Errorf("%s is in %s by the rules, and in %s by the scenario", f.Name, tree.Nodes[leaf].Path, f.groupIn(phaseQuiet))
		}
	}
}

// TestScenarioIsQuietAtFirst: as the first phase says, everyone wants a fifth.
func TestScenarioIsQuietAtFirst(t *testing.T) {
	s := newScenario(group.HTB, false)
	out, in := plans(t, s, phaseQuiet)
	for direction, tree := range map[string]group.Tree{"out": out, "in": in} {
		for _, n := range tree.Nodes {
			if got := s.wanted(phaseQuiet, direction, n.Path); got != n.Guarantee/5 {
				t.Errorf("%s %s wants %v of %v", direction, n.Path, got, n.Guarantee)
			}
		}
	}
}

// TestScenarioShares: what package share says is what the phases are about.
func TestScenarioShares(t *testing.T) {
	s := newScenario(group.HTB, false)
	const acks = unit.Mbit
	for _, c := range []struct {
		phase int
		want  [4]float64 // storage, web, backup, rest, out, in Mbit/s
	}{
		{phaseQuiet, [4]float64{8, 6, 2, 3}},
		{phaseOverload, [4]float64{41.68, 31.26, 10.42, 15.63}}, // 4 are lent
		{phaseIdle, [4]float64{0, 56, 15, 28}},                  // backup at its ceiling
		{phaseReturn, [4]float64{41.68, 31.26, 10.42, 15.63}},
		{phaseMove, [4]float64{44.5, 33.38, 11.13, 10}}, // rest wants 10
		{phaseChange, [4]float64{27.81, 50.06, 11.13, 10}},
	} {
		out, _ := plans(t, s, c.phase)
		got := fairShares(out, func(g string) unit.Rate { return s.wanted(c.phase, "out", g) }, acks)
		for i, want := range c.want {
			if rate := float64(got[i]) / 1e6; rate < want-0.01 || rate > want+0.01 {
				t.Errorf("phase %d: %s gets %.2f, want %.2f", c.phase+1, out.Nodes[i].Path, rate, want)
			}
		}
	}
}

func TestJudged(t *testing.T) {
	for _, c := range []struct {
		received, guarantee, wanted, share float64
		want                               verdict
	}{
		{40, 40, 1000, 42, verdictOK},
		{38.1, 40, 1000, 39, verdictOK},
		{37.9, 40, 1000, 42, missed},
		{38.1, 40, 1000, 42, verdictLow},
		{8, 40, 8, 8, verdictOK},
		{7.5, 40, 8, 8, missed},
		{0, 40, 0, 0, verdictOK},
		{100, 0, 1000, 90, verdictOK},
	} {
		if got := judged(c.received, c.guarantee, c.wanted, c.share, 0.05); got != c.want {
			t.Errorf("%+v is judged %q", c, got)
		}
	}
}

// resultForTest is one of each case that a report knows.
func resultForTest() *demoResult {
	r := &demoResult{Engine: group.HTB, Tolerance: 0.05, Returned: map[string]float64{"out": 12.4, "in": 0.2}, CleanedUp: true, OK: true}
	r.Moved.Connection, r.Moved.Before, r.Moved.After = "tcp 10.0.0.1:9000 10.0.4.2:40000", 4.9e6, 11.3e6
	phase := phaseResult{Phase: 2, Title: "overload", Seconds: 14, Counted: 9}
	for _, d := range []string{"out", "in"} {
		phase.Groups = append(phase.Groups,
			groupResult{Direction: d, Group: "storage", Guarantee: 40e6, Wanted: 1e12, Share: 41.6e6, Received: 41.55e6, Retransmitted: 12, Verdict: verdictOK},
			groupResult{Direction: d, Group: "rest", Guarantee: 15e6, Wanted: 10e6, Share: 10e6, Received: 10e6, Inside: true, Verdict: verdictOK},
		)
	}
	r.Phases = []phaseResult{phase}
	return r
}

func TestDemoReport(t *testing.T) {
	var b strings.Builder
	good := resultForTest()
	bad := resultForTest()
	bad.Phases[0].Groups[0].Received, bad.Phases[0].Groups[0].Verdict = 30e6, missed
	bad.Phases[0].Groups[2].Received, bad.Phases[0].Groups[2].Verdict = 39e6, verdictLow
	bad.Phases[0].Groups[3].Lost, bad.Phases[0].Groups[3].Drops = 2, 1
	bad.Returned = map[string]float64{"in": 3}
	bad.CleanedUp, bad.Left, bad.OK = false, []string{"network demo-1", "/run/netns/hg-demo-1-server"}, false
	stays := resultForTest()
	stays.CleanedUp, stays.Kept = false, "demo-1"
	for _, r := range []*demoResult{good, bad, stays} {
		if err := r.write(&b); err != nil {
			t.Fatal(err)
		}
	}
	for line := range strings.Lines(b.String()) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 80 {
			t.Errorf("a line of %d cells: %s", n, line)
		}
	}
	golden(t, "testdata/demo-report.txt", b.String())
}

// stateForTest is a device of the demo with some counters.
func stateForTest(t *testing.T, at time.Time, bytes uint64) shaper.State {
	out, in := plans(t, newScenario(group.HTB, true), phaseQuiet)
	s := shaper.State{Dev: demoDev, Engine: group.HTB, At: at, Plan: shaper.Plan{Dev: demoDev, Out: &out, In: &in}}
	count := func(tree group.Tree) *shaper.DirectionState {
		d := &shaper.DirectionState{Control: shaper.GroupState{Path: "(control)"}}
		for _, n := range tree.Nodes {
			d.Groups = append(d.Groups, shaper.GroupState{Path: n.Path, Class: "1:10", Guarantee: n.Guarantee, Ceiling: n.Ceiling, Bytes: bytes})
		}
		return d
	}
	s.Out, s.In = count(out), count(in)
	return s
}

func TestLineStage(t *testing.T) {
	var b strings.Builder
	s := &lineStage{w: &b}
	s.say("hello")
	s.phase(1, newScenario(group.HTB, false).phases[phaseOverload])
	at := time.Now()
	s.began = at
	for i := range 5 {
		s.state(stateForTest(t, at.Add(time.Duration(i)*demoEvery), uint64(i)*62_500))
	}
	want := `hello

[2/6] overload, 14s
  Everyone wants everything, and backup floods 30Mbit of UDP that does not
  slow down. Each group has its guarantee.
   1.0s  out: storage 1.0 web 1.0 backup 1.0 rest 1.0  in: storage 1.0 web 1.0 backup 1.0 rest 1.0
   2.0s  out: storage 1.0 web 1.0 backup 1.0 rest 1.0  in: storage 1.0 web 1.0 backup 1.0 rest 1.0
`
	if b.String() != want {
		t.Errorf("got\n%s", b.String())
	}
}

// TestLivePanel drives the panel by hand, as a terminal of 80 by 24 would.
func TestLivePanel(t *testing.T) {
	t.Setenv("LC_ALL", "C.UTF-8")
	p := livePanel{theme: view.NewTheme(io.Discard), tracker: &view.Tracker{}, width: 80, height: 24, cancel: make(chan struct{})}
	send := func(m tea.Msg) tea.Cmd {
		model, cmd := p.Update(m)
		p = model.(livePanel)
		return cmd
	}
	send(tea.WindowSizeMsg{Width: 80, Height: 24})
	if p.View() != "\nmaking the network" {
		t.Errorf("at first:\n%s", p.View())
	}
	began := time.Unix(1700000000, 0)
	send(scene{1, newScenario(group.HTB, false).phases[phaseOverload], began})
	send(printed{})
	for i := range 4 {
		send(stateForTest(t, began.Add(time.Duration(i)*demoEvery), uint64(i)*62_500))
	}
	p.now = began.Add(7 * time.Second)
	golden(t, "testdata/demo-panel.txt", p.View()+"\n")
	send(tea.WindowSizeMsg{Width: 60, Height: 10})
	if n := strings.Count(p.View(), "\n") + 1; n > 7 {
		t.Errorf("%d lines in a window of 10", n)
	}
	send(tea.KeyMsg{Type: tea.KeyCtrlC})
	select {
	case <-p.cancel:
	default:
		t.Error("Ctrl-C ends nothing")
	}
	send(tea.KeyMsg{Type: tea.KeyCtrlC}) // closing twice would panic
	if !strings.Contains(p.View(), "cleaning up") {
		t.Errorf("ending:\n%s", p.View())
	}
	if cmd := send(curtain{}); p.View() != "" || cmd == nil {
		t.Errorf("at the end:\n%s", p.View())
	}
}

// TestLivePanelPrintsInOrder: a second text waits until the first is out, and the
// end waits for all.
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
	if send(said{"two"}) != nil || send(curtain{}) != nil {
		t.Fatal("the second text does not wait")
	}
	if send(printed{}) == nil || len(p.text) != 0 {
		t.Fatal("the second text is not printed")
	}
	cmd := send(printed{})
	if cmd == nil {
		t.Fatal("there is no end")
	}
	if _, ok := cmd().(tea.QuitMsg); !ok {
		t.Error("the end is not the end")
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
			t.Errorf("%q is folded to %q, want %q", text, got, want)
		}
	}
}

// TestLiveStageSurvivesItsScreen: the demo runs to its end without a terminal,
// and its error is the stage's.
func TestLiveStageSurvivesItsScreen(t *testing.T) {
	s := newLiveStage(strings.NewReader(""), io.Discard, 80)
	broken := errors.New("broken")
	err := s.show(context.Background(), func(ctx context.Context) error {
		s.say("one", "two")
		s.status("three")
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("the stage says %v", err)
	}
}

func TestDemoUsage(t *testing.T) {
	w := newWorld(t)
	if r := w.run("demo", "--engine", "frob"); r.code != wrong || !strings.Contains(r.err, "htb or quantum") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	if r := w.run("top", "--interval", "1ms"); r.code != wrong || !strings.Contains(r.err, "100ms to 1h") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	if r := w.run("top", "-o", "yaml"); r.code != wrong || !strings.Contains(r.err, "table or json") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
}
