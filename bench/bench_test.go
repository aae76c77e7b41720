package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"html"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate.dev/headgate/internal/golden"
	"headgate.dev/headgate/internal/plot"
)

// sample is a bench with every outcome of a claim.
func sample() Bench {
	fast := Target{"<=", 10, "ms"}
	full := Target{">=", 98, "%"}
	return Bench{
		Name: "sample", Title: "A sample", About: "Nothing is measured.", Seed: 42,
		Rows: []Row{{"speed", "How fast."}, {"share", "How much."}},
		Cases: []Case{
			{
				Name: "share", Drawn: "limit 37.2Mbit", Claims: []Claim{NewClaim("share/a", "part of the limit", full, "plain").WithPaper(90.4), NewClaim("share/b", "part of the limit", full)},
				Run: func(_ context.Context, r *Run) error {
					s := r.Sheet(Ours)
					s.Set("share/a", []float64{99.5, 70, 99}[r.N])
					s.Set("share/b", 95)
					s.Note("share/b", "one flow")
					s.Keep("raw", []int{1, 2})
					r.Sheet("plain").SetAll("share/a", []float64{80, 70, 74})
					r.Plot(plot.Plot{File: "share", Row: "share", Title: "Share", X: "time (s)", Y: "rate (Mbit/s)", Caption: "A line.", Lines: []plot.Line{
						{Name: "a", X: []float64{0, 1, 2}, Y: []float64{1, 3, 2}, Steps: true}, plot.Level("due", 2, 0, 2, 1), plot.PaperLevel("the paper's", 1.5, 0, 2, 0),
					}})
					return nil
				},
			},
			{
				Name: "speed", Claims: []Claim{
					NewClaim("speed/kept", "time", fast, "broken"), NewClaim("speed/lost", "time", fast), NewClaim("speed/undefined", "time", fast),
				},
				Run: func(_ context.Context, r *Run) error {
					r.Sheet(Ours).Set("speed/kept", 10)
					r.Sheet(Ours).Set("speed/undefined", math.NaN())
					r.Sheet("broken").Fail(errors.New("the peer is not installed"))
					r.Plot(plot.Plot{File: "speed", Row: "speed", Title: "Speed", Y: "time (ms)", Caption: "Bars.", Bars: &plot.Bars{
						Groups: []string{"one", "two"}, Sets: []plot.BarSet{{Name: "headgate", Values: []float64{1, 2}}, {Name: "plain", Values: []float64{3, -1}}},
					}})
					return nil
				},
			},
			{Name: "fails", Claims: []Claim{NewClaim("speed/fails", "time", fast)}, Run: func(context.Context, *Run) error { return errors.New("the device is gone") }},
			{Name: "breaks", Claims: []Claim{NewClaim("speed/breaks", "time", fast)}, Run: func(context.Context, *Run) error { panic("index out of range") }},
		},
	}
}

var environment = Environment{
	Date: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Kernel: "6.18.0 x86_64", HZ: 250, CPU: "a processor", CPUs: 2, MemoryBytes: 8 << 30,
	Go: "go1.26", Commit: "0123456789ab", CongestionControl: "bbr", Available: []string{"reno", "cubic"}, Qdiscs: []string{"htb"},
	Offloads: []string{"tx-checksumming"}, Tools: map[string]string{"sh": "version 1"}, Load: 0.25,
}

func run(t *testing.T, b Bench, o Options) *Result {
	t.Helper()
	o.Environment = &environment
	r, err := b.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	r.Seconds = 0
	for _, s := range r.Sheets {
		s.Others, s.Stolen, s.Stall, s.Starved = 0, 0, 0, 0
	}
	return r
}

func claim(t *testing.T, r *Result, id string) Claim {
	t.Helper()
	for _, c := range r.Claims {
		if c.ID == id {
			return c
		}
	}
	t.Fatalf("no claim %s", id)
	return Claim{}
}

func TestTarget(t *testing.T) {
	for _, c := range []struct {
		target Target
		value  float64
		met    bool
		text   string
	}{
		{Target{"<=", 0.5, "ms"}, 0.5, true, "<= 0.5"}, {Target{"<=", 0.5, "ms"}, 0.5001, false, "<= 0.5"},
		{Target{">=", 99, "%"}, 99, true, ">= 99"}, {Target{">=", 99, "%"}, 98.999, false, ">= 99"}, {Target{"<=", 0, "packets"}, 0, true, "<= 0"},
		{Target{Op: Measured, Unit: "Mbit/s"}, 0, true, "measured"},
	} {
		if got := c.target.Met(c.value); got != c.met {
			t.Errorf("%v met by %v: %v", c.target, c.value, got)
		}
		if c.target.String() != c.text {
			t.Errorf("%#v prints %q, want %q", c.target, c.target.String(), c.text)
		}
		text, _ := json.Marshal(c.target)
		var back Target
		if err := json.Unmarshal(text, &back); err != nil || back.Op != c.target.Op || back.Value != c.target.Value {
			t.Errorf("%s read back as %v, %v", text, back, err)
		}
	}
}

// Every declared claim is in the result, whatever the outcome of its case.
func TestFates(t *testing.T) {
	r := run(t, sample(), Options{Runs: 3})
	for id, want := range map[string]struct {
		ok      bool
		ours    float64 // negative: missing
		missing string
	}{
		"share/a":         {true, 99, ""},
		"share/b":         {false, 95, ""},
		"speed/kept":      {true, 10, ""},
		"speed/lost":      {false, -1, "the case returned no value"},
		"speed/undefined": {false, -1, "is not a number"},
		"speed/fails":     {false, -1, "the device is gone"},
		"speed/breaks":    {false, -1, "index out of range"},
	} {
		c := claim(t, r, id)
		switch {
		case c.OK != want.ok:
			t.Errorf("%s: ok is %v", id, c.OK)
		case want.ours < 0 && (c.Ours != nil || !strings.Contains(c.Missing, want.missing)):
			t.Errorf("%s: ours %v, missing %q, want missing %q", id, c.Ours, c.Missing, want.missing)
		case want.ours >= 0 && (c.Ours == nil || *c.Ours != want.ours || c.Missing != ""):
			t.Errorf("%s: ours %v, missing %q, want %v", id, c.Ours, c.Missing, want.ours)
		}
	}
	if p := claim(t, r, "share/a").Peer["plain"]; p == nil || *p != 74 {
		t.Errorf("the peer's figure is %v", p)
	}
	if c := claim(t, r, "speed/kept"); c.Peer["broken"] != nil || !slices.ContainsFunc(c.Notes, func(n string) bool { return strings.Contains(n, "not installed") }) {
		t.Errorf("a peer that could not be measured: %v, notes %q", c.Peer, c.Notes)
	}
	if len(r.Sheets) != 3*6 {
		t.Errorf("%d sheets are kept, want those of all runs", len(r.Sheets))
	}
	if r.Claims[0].ID != "speed/kept" {
		t.Errorf("claims begin with %s, want the order of the rows", r.Claims[0].ID)
	}
}

func TestUndeclaredValueIsSaid(t *testing.T) {
	b := sample()
	b.Cases = b.Cases[:1]
	inner := b.Cases[0].Run
	b.Cases[0].Run = func(ctx context.Context, r *Run) error {
		r.Sheet(Ours).Set("share/c", 1)
		r.Sheet("stranger").Set("share/a", 1)
		return inner(ctx, r)
	}
	r := run(t, b, Options{})
	for _, want := range []string{"a value of headgate for share/c was not declared", "a value of stranger for share/a was not declared"} {
		if !slices.ContainsFunc(r.Sheets, func(s *Sheet) bool { return strings.Contains(s.Missing, want) }) {
			t.Errorf("no sheet has %q", want)
		}
	}
}

func TestOnly(t *testing.T) {
	b := sample()
	for only, want := range map[string]int{"share": 2, "share/": 2, "share/a": 1, "speed": 5} {
		if r := run(t, b, Options{Only: []string{only}}); len(r.Claims) != want {
			t.Errorf("--only %s gives %d claims, want %d", only, len(r.Claims), want)
		}
	}
	for _, only := range []string{"shar", "share/c", "speed/kept/more"} {
		if _, err := b.Run(t.Context(), Options{Only: []string{only}, Environment: &environment}); !errors.Is(err, ErrUnknown) {
			t.Errorf("--only %s: %v, want ErrUnknown", only, err)
		}
	}
	declared, err := b.Declared(nil)
	if err != nil || len(declared) != 7 || declared[0].Ours != nil {
		t.Errorf("Declared gives %d claims, %v", len(declared), err)
	}
}

func TestMistakesInABench(t *testing.T) {
	twice := sample()
	twice.Cases = append(twice.Cases, twice.Cases[0])
	noRow := sample()
	noRow.Rows = noRow.Rows[:1]
	for want, b := range map[string]Bench{"twice": twice, "there is no row share": noRow} {
		if _, err := b.Run(t.Context(), Options{Environment: &environment}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := sample()
	inner := b.Cases[0].Run
	b.Cases[0].Run = func(c context.Context, r *Run) error { cancel(); return inner(c, r) }
	r, err := b.Run(ctx, Options{Environment: &environment})
	if err != nil {
		t.Fatal(err)
	}
	if c := claim(t, r, "speed/kept"); c.Ours != nil || !strings.Contains(c.Missing, "interrupted") {
		t.Errorf("a case after the interruption: %v, %q", c.Ours, c.Missing)
	}
}

// Cases of one batch wait for each other here: they block unless they run in parallel.
func TestAlongside(t *testing.T) {
	b := Bench{Name: "x", Rows: []Row{{ID: "r"}}}
	var meet sync.WaitGroup
	meet.Add(2)
	for _, name := range []string{"a", "b"} {
		b.Cases = append(b.Cases, Case{
			Name: name, Alongside: func(bool) string { return "together" }, Claims: []Claim{NewClaim("r/"+name, "", Target{">=", 1, ""})},
			Takes: func(bool) time.Duration { return 5 * time.Second },
			Run: func(_ context.Context, r *Run) error {
				meet.Done()
				meet.Wait()
				r.Sheet(Ours).Set("r/"+name, 1)
				return nil
			},
		})
	}
	if got := b.Takes(Options{Runs: 2}); got != 10*time.Second {
		t.Errorf("Takes is %v, want 10s: the two run together, twice", got)
	}
	if r := run(t, b, Options{}); len(r.Short()) != 0 {
		t.Errorf("short: %v", r.Short())
	}
}

func TestJSON(t *testing.T) {
	var out bytes.Buffer
	if err := run(t, sample(), Options{Quick: true, Only: []string{"share", "speed/kept"}}).WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, filepath.Join("testdata", "result.json"), out.String())
}

func TestTable(t *testing.T) {
	var out bytes.Buffer
	if err := run(t, sample(), Options{}).WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, filepath.Join("testdata", "table.txt"), out.String())
}

func TestReport(t *testing.T) {
	dir := t.TempDir()
	b := sample()
	if err := run(t, b, Options{Quick: true}).WriteReport(dir, b); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "sample.md"))
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, filepath.Join("testdata", "report.md"), string(text))
	drawn, err := os.ReadFile(filepath.Join(dir, "sample", "share.svg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Share (smoke run)", "the paper's", "rate (Mbit/s)"} {
		if !strings.Contains(html.UnescapeString(string(drawn)), want) {
			t.Errorf("share.svg does not have %q", want)
		}
	}
	for _, name := range []string{"share", "speed"} {
		f, err := os.Open(filepath.Join(dir, "sample", name+".png"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		picture, err := png.Decode(f)
		if err != nil {
			t.Fatalf("%s.png: %v", name, err)
		}
		colours := map[any]bool{}
		for x := picture.Bounds().Min.X; x < picture.Bounds().Max.X; x += 2 {
			for y := picture.Bounds().Min.Y; y < picture.Bounds().Max.Y; y += 2 {
				colours[picture.At(x, y)] = true
			}
		}
		if len(colours) < 10 {
			t.Errorf("%s.png has %d colours: nothing is drawn", name, len(colours))
		}
	}
	var result Result
	data, err := os.ReadFile(filepath.Join(dir, "sample.json"))
	if err == nil {
		err = json.Unmarshal(data, &result)
	}
	if err != nil || len(result.Claims) != 7 {
		t.Errorf("sample.json has %d claims, %v", len(result.Claims), err)
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		v    []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{3, 1}, 2}, {[]float64{9, 1, 2}, 2}} {
		if got := Median(c.v); got != c.want {
			t.Errorf("Median(%v) = %v", c.v, got)
		}
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 99.923: "99.92", 0.000532: "0.000532", 1234.56: "1235", 0.05: "0.05", 100: "100", -3.14159: "-3.142"} {
		if got := Number(v); got != want {
			t.Errorf("Number(%v) = %q, want %q", v, got, want)
		}
	}
}

// Only what exceeded a limit is reported.
func TestDisturbance(t *testing.T) {
	for want, took := range map[string]taken{
		"": {others: 0.05, stolen: 0.04, stall: 0.01},
		"disturbed: other programs used 27 % of a processor, steal time was 1 % of a processor": {others: 0.27, stolen: 0.01},
		"disturbed: no thread of the benchmark ran for 195 ms":                                  {others: 0.001, stall: 0.195},
		"disturbed: threads of this program waited 7.5 s for a processor":                       {starved: 7.5},
	} {
		if got := took.String(); got != want {
			t.Errorf("%+v is described as %q, want %q", took, got, want)
		}
	}
}

func TestThisMachine(t *testing.T) {
	e := ThisMachine()
	if e.Kernel == "" || e.CPUs < 1 || e.MemoryBytes == 0 || e.CongestionControl == "" {
		t.Errorf("%+v", e)
	}
	// As root, which may create the devices for detection.
	if os.Geteuid() == 0 && (!slices.Contains(e.Qdiscs, "htb") || !slices.Contains(e.Offloads, "generic-segmentation-offload")) {
		t.Errorf("qdiscs %q, offloads %q", e.Qdiscs, e.Offloads)
	}
}

// The range of the runs, or of the samples of one run, is reported with the median.
func TestSpread(t *testing.T) {
	r := run(t, sample(), Options{Runs: 3})
	a, b := claim(t, r, "share/a"), claim(t, r, "share/b")
	if a.N != 3 || a.Least == nil || *a.Least != 70 || *a.Most != 99.5 || a.figure() != "99 (70 to 99.5, n 3)" {
		t.Errorf("three runs: n %d, %v to %v, %q", a.N, a.Least, a.Most, a.figure())
	}
	if got := a.PeerSpread["plain"]; got != (Spread{9, 70, 80}) {
		t.Errorf("three samples in each of three runs: %+v", got)
	}
	if b.N != 3 || *b.Least != 95 || *b.Most != 95 {
		t.Errorf("three equal runs: n %d, %v to %v", b.N, b.Least, b.Most)
	}
	once := claim(t, run(t, sample(), Options{}), "share/a")
	if once.N != 1 || once.Least != nil || once.figure() != "99.5" {
		t.Errorf("one run: n %d, least %v, %q", once.N, once.Least, once.figure())
	}
	if lost := claim(t, r, "speed/lost"); lost.N != 0 {
		t.Errorf("a claim without a value has n %d", lost.N)
	}
}

// Each case is measured once before any is measured again.
func TestRunsAreInterleaved(t *testing.T) {
	var order []string
	b := Bench{Name: "x", Rows: []Row{{ID: "r"}}}
	for _, name := range []string{"a", "b"} {
		b.Cases = append(b.Cases, Case{Name: name, Claims: []Claim{NewClaim("r/"+name, "", Target{">=", 1, ""})}, Run: func(context.Context, *Run) error {
			order = append(order, name)
			return nil
		}})
	}
	run(t, b, Options{Runs: 2})
	if strings.Join(order, "") != "abab" {
		t.Errorf("the order is %v", order)
	}
}

// A claim with a value that is not a number has no value, however many others there are.
func TestSetAllRefusesNoNumber(t *testing.T) {
	r := Run{mu: &sync.Mutex{}}
	s := r.Sheet(Ours)
	s.SetAll("a", []float64{1, math.NaN()})
	s.SetAll("b", nil)
	if len(s.Values) != 0 || len(s.Samples) != 0 || !slices.Equal(s.unusable, []string{"a"}) {
		t.Errorf("values %v, samples %v, unusable %v", s.Values, s.Samples, s.unusable)
	}
}

// A smoke run does not replace the results of a full run.
func TestCheckReport(t *testing.T) {
	dir, b := t.TempDir(), sample()
	quick, part, full := Options{Quick: true}, Options{Only: []string{"share"}}, Options{}
	refuses := func(when string, want bool, o Options) {
		t.Helper()
		if err := b.CheckReport(dir, o); (err != nil) != want {
			t.Errorf("%s, %+v: %v", when, o, err)
		}
	}
	refuses("an empty folder", false, quick)
	if err := run(t, b, quick).WriteReport(dir, b); err != nil {
		t.Fatal(err)
	}
	refuses("over a smoke run", false, quick)
	if err := run(t, b, full).WriteReport(dir, b); err != nil {
		t.Fatal(err)
	}
	refuses("over a record", true, quick)
	refuses("over a record", true, part)
	refuses("over a record", false, full)
}

// Plots of all claims are drawn after all were measured.
func TestPlotsOfClaims(t *testing.T) {
	b := sample()
	b.Plots = func(claims []Claim) []plot.Plot {
		for _, c := range claims {
			if c.ID == "share/a" && c.Ours != nil {
				return []plot.Plot{{File: "all", Row: "share", Title: "All", Lines: []plot.Line{plot.Level("a", *c.Ours, 0, 1, 0)}}}
			}
		}
		return nil
	}
	dir := t.TempDir()
	if err := run(t, b, Options{}).WriteReport(dir, b); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "sample", "all.svg")); err != nil {
		t.Error(err)
	}
}

func TestVersions(t *testing.T) {
	got := versions([][]string{{"go", "version"}, {"no-such-program", "--version"}})
	if !strings.HasPrefix(got["go"], "go version go") || !strings.HasPrefix(got["no-such-program"], "not available: ") {
		t.Errorf("%q", got)
	}
}
