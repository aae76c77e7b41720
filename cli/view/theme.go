package view

import (
	"io"
	"os"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"github.com/mattn/go-runewidth"

	"headgate/cli/view/early"
)

func init() { early.Done() }

// Theme is how things look: colours, if the terminal has them and NO_COLOR does
// not forbid them, and the signs of bars and sparklines.
type Theme struct {
	bold, dim, own, borrowed, mark, alarm lipgloss.Style
	signs
}

type signs struct {
	fill     []rune // of a cell, in equal steps; the last is all of it
	borrowed rune
	room     rune // up to the ceiling
	mark     rune // the guarantee
	spark    []rune
	more     string // what stands for text that is cut off
}

var (
	unicode = signs{
		fill: []rune("▏▎▍▌▋▊▉█"), borrowed: '▒', room: '·', mark: '│', spark: []rune("▁▂▃▄▅▆▇█"), more: "…",
	}
	ascii = signs{
		fill: []rune("#"), borrowed: '+', room: '.', mark: '|', spark: []rune("_.-=+*#@"), more: "~",
	}
)

func init() {
	// Blocks are one cell wide whatever the locale: in East Asian ones the library
	// would take them for two.
	runewidth.DefaultCondition.EastAsianWidth = false
}

// NewTheme is the theme for what is written to w. Only a terminal gets colours.
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

// utf8Locale tells whether the terminal can show more than ASCII. Where no
// locale is set, as in a bare container, it almost always can.
func utf8Locale(env func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToUpper(env(name)); v != "" {
			return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8")
		}
	}
	return true
}

// Bold makes text stand out, if the terminal can.
func (t Theme) Bold(text string) string { return t.bold.Render(text) }

// Dim makes text step back, if the terminal can.
func (t Theme) Dim(text string) string { return t.dim.Render(text) }
