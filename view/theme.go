package view

import (
	"io"
	"os"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"github.com/mattn/go-runewidth"

	"headgate.dev/headgate/view/early"
)

func init() { early.Done() }

// Theme has colours, if the terminal supports them and NO_COLOR is not set, and the signs
// of bars and sparklines.
type Theme struct {
	bold, dim, own, borrowed, mark, alarm lipgloss.Style
	signs
}

type signs struct {
	fill     []rune // parts of a cell in equal steps; the last is a full cell
	borrowed rune
	unused   rune // unused up to the ceiling
	mark     rune // the guarantee
	spark    []rune
	more     string // replaces truncated text
}

var (
	unicode = signs{
		fill: []rune("▏▎▍▌▋▊▉█"), borrowed: '▒', unused: '·', mark: '│', spark: []rune("▁▂▃▄▅▆▇█"), more: "…",
	}
	ascii = signs{
		fill: []rune("#"), borrowed: '+', unused: '.', mark: '|', spark: []rune("_.-=+*#@"), more: "~",
	}
)

func init() {
	// Block characters are one cell wide in all locales. The library counts two cells in
	// East Asian locales.
	runewidth.DefaultCondition.EastAsianWidth = false
}

// NewTheme returns the theme for output to w. Only a terminal gets colours.
func NewTheme(w io.Writer) Theme {
	r := lipgloss.NewRenderer(w)
	color := func(c string) lipgloss.Style { return r.NewStyle().Foreground(lipgloss.Color(c)) }
	t := Theme{
		bold: r.NewStyle().Bold(true), dim: r.NewStyle().Faint(true),
		own: color("2"), borrowed: color("3"), mark: r.NewStyle().Bold(true), alarm: color("1"),
		signs: unicode,
	}
	if !utf8Locale(os.Getenv) {
		t.signs = ascii
	}
	return t
}

// utf8Locale reports whether the terminal supports more than ASCII. Without a locale, as in
// a minimal container, utf8Locale returns true, because almost all terminals do.
func utf8Locale(env func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToUpper(env(name)); v != "" {
			return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8")
		}
	}
	return true
}

// Bold renders text bold, if the terminal supports it.
func (t Theme) Bold(text string) string { return t.bold.Render(text) }

// Dim renders text faint, if the terminal supports it.
func (t Theme) Dim(text string) string { return t.dim.Render(text) }
