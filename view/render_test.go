package view

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/golden"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// TestRender compares the view with golden files at widths with different columns.
func TestRender(t *testing.T) {
	s := newServer()
	f := frameOf(s, 30)
	f.Devices[0].Foreign = []string{"egress filter u32 pref 49152"}
	f.Devices[0].Drift = []string{"change out group web: guarantee 20Mbit", "add    out group a", "add    out group b", "add    out group c", "add    out group d"}
	for _, width := range []int{60, 80, 100, 140, 200, 300} {
		heading, lines := Render(f, Options{Width: width, Theme: plainTheme()})
		text := strings.Join(append([]string{heading}, lines...), "\n") + "\n"
		for line := range strings.Lines(text) {
			if w := lipgloss.Width(strings.TrimSuffix(line, "\n")); w > width {
				t.Errorf("at width %d a line has %d cells: %q", width, w, line)
			}
		}
		golden.Compare(t, filepath.Join("testdata", fmt.Sprintf("width-%d.txt", width)), text)
	}
}

// TestEveryWidth checks that no width panics or overflows.
func TestEveryWidth(t *testing.T) {
	f := frameOf(newServer(), 5)
	for width := 1; width <= 320; width++ {
		_, lines := Render(f, Options{Width: width, Theme: plainTheme()})
		for _, line := range lines {
			if w := lipgloss.Width(line); width >= 32 && w > width {
				t.Fatalf("at width %d a line has %d cells: %q", width, w, line)
			}
		}
	}
}

func TestRenderSortedAndFocused(t *testing.T) {
	f := frameOf(newServer(), 5)
	other := frameOf(newServer(), 1).Devices[0]
	other.Dev = "eth1"
	f.Devices = append(f.Devices, other, Device{Dev: "eth2", Removed: true})
	var b strings.Builder
	for _, o := range []Options{
		{Sort: ByRate, Focus: "eth0"}, {Sort: ByBorrowed, Focus: "eth0"}, {Sort: ByDrops, Focus: "eth0"}, {},
	} {
		o.Width, o.Theme = 80, plainTheme()
		heading, lines := Render(f, o)
		fmt.Fprintf(&b, "--- %s %s\n%s\n%s\n", o.Sort, o.Focus, heading, strings.Join(lines, "\n"))
	}
	golden.Compare(t, filepath.Join("testdata", "sorted.txt"), b.String())
}

// TestColours checks that colours do not change the text.
func TestColours(t *testing.T) {
	f := frameOf(newServer(), 5)
	r := lipgloss.NewRenderer(&strings.Builder{})
	r.SetColorProfile(termenv.ANSI)
	style := func(c string) lipgloss.Style { return r.NewStyle().Foreground(lipgloss.Color(c)) }
	coloured := Theme{r.NewStyle().Bold(true), r.NewStyle().Faint(true), style("2"), style("3"), r.NewStyle().Bold(true), style("1"), unicode}
	_, with := Render(f, Options{Width: 120, Theme: coloured})
	_, without := Render(f, Options{Width: 120, Theme: plainTheme()})
	if strings.Contains(strings.Join(without, ""), "\x1b") {
		t.Error("the plain theme has colours")
	}
	if !strings.Contains(strings.Join(with, ""), "\x1b[3") {
		t.Error("the coloured theme has no colours")
	}
	for i := range with {
		if strip(with[i]) != without[i] {
			t.Errorf("colours change text:\n%s\n%s", strip(with[i]), without[i])
		}
	}
}

// strip removes escape sequences.
func strip(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == 0x1b {
			i += strings.IndexByte(s[i:], 'm')
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func TestBar(t *testing.T) {
	for _, c := range []struct {
		rate, guarantee, ceiling uint64
		want                     string
	}{
		{0, 40, 100, "····│·····"},
		{0, 0, 100, "··········"},
		{5, 40, 100, "▌···│·····"},
		{40, 40, 100, "████│·····"},
		{70, 40, 100, "████│▒▒···"},
		{100, 40, 100, "████│▒▒▒▒▒"},
		{140, 40, 100, "████│▒▒▒▒▒"},
		{25, 10, 30, "█│▒       "},
		{25, 0, 30, "▒▒▒       "},
		{100, 100, 100, "██████████"},
		{0, 99, 100, "·········│"},
	} {
		got := plainTheme().bar(Row{Depth: 1, Rate: float64(c.rate), Guarantee: c.guarantee, Ceiling: c.ceiling}, 100, 10)
		if got != c.want {
			t.Errorf("a rate of %d, guarantee %d, ceiling %d gives %q, want %q", c.rate, c.guarantee, c.ceiling, got, c.want)
		}
	}
}

func TestASCII(t *testing.T) {
	theme := plainTheme()
	theme.signs = ascii
	heading, lines := Render(frameOf(newServer(), 30), Options{Width: 140, Theme: theme})
	for _, line := range append(lines, heading) {
		if strings.ContainsFunc(line, func(r rune) bool { return r > 126 }) {
			t.Errorf("%q is not ASCII", line)
		}
	}
	for _, c := range []struct {
		env  map[string]string
		want bool
	}{
		{nil, true}, {map[string]string{"LANG": "C"}, false}, {map[string]string{"LANG": "C.UTF-8"}, true},
		{map[string]string{"LANG": "C", "LC_ALL": "en_US.utf8"}, true}, {map[string]string{"LANG": "de_DE.UTF-8", "LC_CTYPE": "POSIX"}, false},
	} {
		if got := utf8Locale(func(k string) string { return c.env[k] }); got != c.want {
			t.Errorf("utf8Locale with %v is %v", c.env, got)
		}
	}
}

func TestLines(t *testing.T) {
	f := frameOf(newServer(), 2)
	f.Devices[0].Foreign = []string{`filter "x"`}
	f.Devices[0].Drift = []string{"change out group web"}
	f.Devices = append(f.Devices, Device{Dev: "eth1", Removed: true})
	var b strings.Builder
	if err := WriteLines(&b, f); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, filepath.Join("testdata", "lines.txt"), b.String())
	b.Reset()
	if err := WriteJSON(&b, f); err != nil {
		t.Fatal(err)
	}
	if strings.Count(b.String(), "\n") != 1 {
		t.Error("JSON is not one line")
	}
	golden.Compare(t, filepath.Join("testdata", "frame.json"), b.String())
	b.Reset()
	if err := WriteLines(&b, frameOf(newServer(), 1)); err != nil || b.Len() > 0 {
		t.Errorf("the first observation prints lines (%v): %s", err, b.String())
	}
}

// BenchmarkRender draws 4000 groups, more than an interface usually has.
func BenchmarkRender(b *testing.B) {
	s := newServer()
	for i := range 4000 {
		s.out.Nodes = append(s.out.Nodes, group.Node{Path: fmt.Sprintf("g%d", i), Parent: -1, Depth: 1, Leaf: true, Guarantee: unit.Kbit, Ceiling: 100 * unit.Mbit})
	}
	var tr Tracker
	i := 0
	for b.Loop() {
		i++
		f := tr.Update(epoch, []shaper.State{s.at(i)})
		Render(f, Options{Width: 200, Theme: plainTheme()})
	}
}
