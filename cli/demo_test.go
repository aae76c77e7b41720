package cli

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"slices"
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

// TestScenario: the scenario is consistent.
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
			if p.title == "" || p.checkOutput == "" {
				t.Errorf("phase %d has no text", i+1)
			}
			if from, to := s.counted(i); from >= to || to > s.length() {
				t.Errorf("phase %d: measured from %v to %v", i+1, from, to)
			}
			// The user must have time to read the text of a phase.
			if !fast && p.length < 8*time.Second {
				t.Errorf("phase %d takes %v, want at least 8s", i+1, p.length)
			}
		}
		if most := map[bool]time.Duration{true: 22 * time.Second, false: 63 * time.Second}[fast]; s.length() > most {
			t.Errorf("the scenario takes %v, want at most %v", s.length(), most)
		}
	}
}

// plans returns the group trees of a host's configuration; in is empty if direction in has no
// limit.
func plans(t *testing.T, s demoScenario, host string, export unit.Rate) (out, in group.Tree) {
	t.Helper()
	set, err := config.Parse("host.yaml", []byte(s.config(host, export)))
	if err != nil {
		t.Fatal(err)
	}
	i := set.Interfaces[0]
	if i.InTree == nil {
		i.InTree = &group.Tree{}
	}
	return *i.OutTree, *i.InTree
}

func TestScenarioConfig(t *testing.T) {
	s := newScenario(group.Quantum, false)
	out, _ := plans(t, s, demoHosts[0], demoExport)
	if len(out.Nodes) != 4 || out.Nodes[2].Path != "export" || out.Nodes[1].Ceiling != demoOut {
		t.Errorf("groups of the engine quantum: %+v", out.Nodes)
	}
	s = newScenario(group.HTB, false)
	out, in := plans(t, s, demoHosts[0], demoExport)
	after, _ := plans(t, s, demoHosts[0], demoExportMore)
	light, _ := plans(t, s, demoHosts[1], demoExport)
	of := func(tree group.Tree, path string) group.Node {
		t.Helper()
		i := slices.IndexFunc(tree.Nodes, func(n group.Node) bool { return n.Path == path })
		if i < 0 {
			t.Fatalf("no group %s", path)
		}
		return tree.Nodes[i]
	}
	for _, c := range []struct {
		what      string
		got, want unit.Rate
	}{
		{"out's limit", out.Limit, 100 * unit.Mbit}, {"in's limit", in.Limit, 80 * unit.Mbit},
		{"media's guarantee", of(out, "media").Guarantee, 50 * unit.Mbit},
		{"storage's guarantee", of(out, "media/storage").Guarantee, 40 * unit.Mbit},
		{"export's guarantee", of(out, "shop/export").Guarantee, 20 * unit.Mbit}, {"then", of(after, "shop/export").Guarantee, 35 * unit.Mbit},
		{"the highest possible guarantee of export", demoExportMore, of(out, "shop").Guarantee - of(out, "shop/web").Guarantee},
		{"backup's ceiling", of(in, "media/backup").Ceiling, 12 * unit.Mbit},
		{"shop's guarantee elsewhere", of(light, "shop").Guarantee, 4500 * unit.Kbit},
		{"the bottleneck out", demoOutReal, 101 * unit.Mbit}, {"the bottleneck in", demoInReal, 80800 * unit.Kbit},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
}

// TestScenarioFlowsFollowTheRules: the configuration's rules put the packets of each flow
// in the flow's group.
func TestScenarioFlowsFollowTheRules(t *testing.T) {
	for _, engine := range []group.Engine{group.HTB, group.Quantum} {
		s := newScenario(engine, true)
		addresses := map[string]netip.Addr{}
		for _, d := range s.network("demo-1").Devices() {
			if _, first := addresses[d.Node]; !first {
				addresses[d.Node] = d.IPv4.Addr()
			}
		}
		for _, f := range s.flows {
			out, in := plans(t, s, f.host, demoExport)
			tree := out
			if f.direction == "in" {
				tree = in
			}
			p := group.Packet{Proto: group.TCP, Src: addresses[f.From], Dst: addresses[f.To], SPort: f.SrcPort, DPort: f.DstPort, DSCP: f.DSCP}
			if f.Protocol == traffic.UDP {
				p.Proto = group.UDP
			}
			if _, leaf := tree.Classify(p); tree.Nodes[leaf].Path != s.groupIn(f, phaseQuiet) {
				t.Errorf("%s, %s: the rules select %s, the scenario has %s", engine, f.Name, tree.Nodes[leaf].Path, s.groupIn(f, phaseQuiet))
			}
		}
	}
}

// TestScenarioGifts: the groups that are delegated to tenants exist.
func TestScenarioGifts(t *testing.T) {
	for _, engine := range []group.Engine{group.HTB, group.Quantum} {
		s := newScenario(engine, true)
		for _, g := range s.delegations() {
			out, in := plans(t, s, g.host, demoExport)
			tree := map[string]group.Tree{"out": out, "in": in}[g.direction]
			if !slices.ContainsFunc(tree.Nodes, func(n group.Node) bool { return n.Path == g.group }) {
				t.Errorf("%s: no such group: %+v", engine, g)
			}
		}
	}
}

// TestScenarioIsQuietAtFirst: in the first phase the demand of each group is a fifth of its guarantee.
func TestScenarioIsQuietAtFirst(t *testing.T) {
	s := newScenario(group.HTB, false)
	for _, host := range demoHosts {
		out, in := plans(t, s, host, demoExport)
		for direction, tree := range map[string]group.Tree{"out": out, "in": in} {
			for _, n := range tree.Nodes {
				if got := s.wanted(phaseQuiet, demoPlace{host, direction, n.Path}); n.Leaf && got != n.Guarantee/5 {
					t.Errorf("%s %s %s: demand %v, want a fifth of %v", host, direction, n.Path, got, n.Guarantee)
				}
			}
		}
	}
}

// TestScenarioShares: the allocations of package share show what the phases demonstrate.
func TestScenarioShares(t *testing.T) {
	s := newScenario(group.HTB, false)
	const acks = unit.Mbit
	for _, c := range []struct {
		phase  int
		export unit.Rate
		want   [6]float64 // media, storage, backup, shop, export, web, out, in Mbit/s
	}{
		{phaseQuiet, demoExport, [6]float64{10, 8, 2, 6, 4, 2}},
		{phaseOverload, demoExport, [6]float64{52.11, 41.68, 10.42, 46.89, 31.26, 15.63}}, // 4 are lent to the tenants, 50 to 45
		{phaseIdle, demoExport, [6]float64{15, 0, 15, 84, 56, 28}},                        // backup at its ceiling
		{phaseReturn, demoExport, [6]float64{52.11, 41.68, 10.42, 46.89, 31.26, 15.63}},
		{phaseDeadline, demoExportMore, [6]float64{52.11, 41.68, 10.42, 46.89, 36.47, 10.42}},
		{phaseBack, demoExport, [6]float64{52.11, 41.68, 10.42, 46.89, 31.26, 15.63}},
		{phaseMove, demoExport, [6]float64{52.11, 41.68, 10.42, 46.89, 38.89, 8}}, // the demand of web is 8
	} {
		out, _ := plans(t, s, demoHosts[0], c.export)
		wants := make([]unit.Rate, len(out.Nodes))
		for i, n := range out.Nodes {
			wants[i] = s.wanted(c.phase, demoPlace{demoHosts[0], "out", n.Path})
		}
		got := fairShares(out, wants, acks)
		for i, want := range c.want {
			if rate := float64(got[i]) / 1e6; rate < want-0.01 || rate > want+0.01 {
				t.Errorf("phase %d: %s gets %.2f, want %.2f", c.phase+1, out.Nodes[i].Path, rate, want)
			}
		}
	}
}

// TestDemoShows: a shown command fits a terminal, and is valid in a shell.
func TestDemoShows(t *testing.T) {
	var b strings.Builder
	p := &play{stage: &lineStage{w: &b}}
	args := []string{"assign", "shop/export", "--server", "shop", "--host", "host1", "--dev", "uplink", "--output", "table", "--conn", "tcp 10.0.0.1:9000 10.0.6.2:40000"}
	p.showCommand(demoController, args, " &")
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

// TestDemoAnswers: answers of the service are formatted for the user.
func TestDemoAnswers(t *testing.T) {
	for answer, want := range map[string]string{
		`{"path":"shop","guaranteed_rate":"45Mbit","unallocated":"15Mbit","groups":[{"name":"web"}]}`: "200 guaranteed 45Mbit, 15Mbit unallocated",
		`{"path":"shop/web","guaranteed_rate":"10Mbit","unallocated":"10Mbit"}`:                       "200 guaranteed 10Mbit",
		`{"title":"no","detail":"group not found"}`:                                                   "200 group not found",
		`oops`: "200",
	} {
		if got := (demoRequest{Status: 200, Answer: []byte(answer)}).text(); got != want {
			t.Errorf("%s: %q, want %q", answer, got, want)
		}
	}
}

// TestDemoRounds: continuous traffic goes through all phases in every round.
func TestDemoRounds(t *testing.T) {
	s := newScenario(group.HTB, true)
	const rounds = 3
	for i, f := range s.rounds(rounds * s.length()) {
		once := s.flows[i].Schedule
		if len(f.Schedule) != rounds*len(once) {
			t.Fatalf("%s: %d steps, want %d", f.Name, len(f.Schedule), rounds*len(once))
		}
		for n, step := range f.Schedule {
			want := once[n%len(once)]
			if want.At += time.Duration(n/len(once)) * s.length(); step != want {
				t.Errorf("%s: step %d: %+v, want %+v", f.Name, n, step, want)
			}
		}
		if err := f.Validate(); err != nil {
			t.Error(err)
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
		if got := verdictOf(c.received, c.guarantee, c.wanted, c.share, 0.05); got != c.want {
			t.Errorf("%+v: verdict %q", c, got)
		}
	}
}

// resultForTest is a result with one of each case of the report.
func resultForTest() *demoResult {
	r := &demoResult{Engine: group.HTB, Tolerance: 0.05, Returned: map[string]float64{"out": 12.4, "in": 0.2}, CleanedUp: true, OK: true}
	r.Moved.Connection, r.Moved.Before, r.Moved.After = "tcp 10.0.0.1:9000 10.0.6.2:40000", 4.9e6, 11.3e6
	r.Changes = []tenantChange{{"35Mbit", 9.4}, {"20Mbit", 7.6}}
	r.Usage = []usageRow{
		{Tenant: "media", Host: "host1", Direction: "out", Group: "media/storage", Guaranteed: 251_200_000, Borrowed: 1_440_000, Lent: 900_000, Delivered: 250_000_000, Received: 249_900_000},
		{Tenant: "shop", Host: "host3", Direction: "in", Group: "shop", Guaranteed: 1_000_000, Unmet: 12},
	}
	phase := phaseResult{Phase: 2, Title: "overload", Seconds: 14, Counted: 9}
	for _, d := range []string{"out", "in"} {
		phase.Groups = append(phase.Groups,
			groupResult{Host: "host1", Direction: d, Group: "media/storage", Guarantee: 40e6, Wanted: 1e12, Share: 41.6e6, Received: 41.55e6, Retransmitted: 12, Verdict: verdictOK},
			groupResult{Host: "host1", Direction: d, Group: "shop", Guarantee: 15e6, Wanted: 10e6, Share: 10e6, Received: 10e6, Inside: true, Verdict: verdictOK},
		)
	}
	r.Phases = []phaseResult{phase}
	r.Others = phaseResult{Title: "the other hosts", Seconds: 60, Counted: 50, Groups: []groupResult{
		{Host: "host2", Direction: "out", Group: "media", Guarantee: 5e6, Wanted: 1e12, Share: 6.8e6, Received: 6.7e6, Verdict: verdictOK},
		{Host: "host3", Direction: "out", Group: "media", Guarantee: 5e6, Wanted: 3e6, Share: 3e6, Received: 3e6, Inside: true, Verdict: verdictOK},
	}}
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
	bad.Disturbed = "meanwhile other programs used 27 % of a processor"
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
			t.Errorf("line of %d cells: %s", n, line)
		}
	}
	golden(t, "testdata/demo-report.txt", b.String())
}

// stateForTest returns the state of the demo's device with bytes in each group's counter.
func stateForTest(t *testing.T, at time.Time, bytes uint64) shaper.State {
	out, in := plans(t, newScenario(group.HTB, true), demoHosts[0], demoExport)
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
	send(phaseMessage{1, newScenario(group.HTB, false).phases[phaseOverload], began})
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

func TestDemoUsage(t *testing.T) {
	w := newWorld(t)
	if r := w.run("demo", "--serve", "--keep"); r.code != exitUsage || !strings.Contains(r.err, "serve") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	if r := w.run("demo", "--engine", "frob"); r.code != exitUsage || !strings.Contains(r.err, "htb or quantum") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	if r := w.run("top", "--interval", "1ms"); r.code != exitUsage || !strings.Contains(r.err, "100ms to 1h") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	if r := w.run("top", "-o", "yaml"); r.code != exitUsage || !strings.Contains(r.err, "table or json") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
}
