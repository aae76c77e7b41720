package view

import (
	"slices"
	"strings"

	"github.com/charmbracelet/lipgloss"

	"headgate.dev/headgate/unit/rounded"
	"headgate.dev/headgate/usage"
)

// column is one column of the table. Columns of fixed width have text; bar and
// history have draw and use the remaining width.
type column struct {
	title string
	width int
	text  func(Row) string
	style func(Row) lipgloss.Style
	draw  func(r Row, limit uint64, width int) string
}

// Widths, in cells.
const (
	minName, maxName   = 10, 40
	minBar, goodBar    = 12, 24
	minSpark, maxSpark = 10, historyLength
	maxBar             = 80
)

// columns selects the columns that fit into width, by importance, and then widens
// the drawings. name is the length of the longest name.
func (t Theme) columns(width, name int) []column {
	measured := func(f func(Row) string) func(Row) string {
		return func(r Row) string {
			if r.unknown {
				return "-"
			}
			return f(r)
		}
	}
	plain := func(Row) lipgloss.Style { return t.dim }
	bold := func(r Row) lipgloss.Style {
		if r.Depth == 0 {
			return t.bold
		}
		return lipgloss.NewStyle()
	}
	all := []column{
		{title: "GROUP", width: min(max(name, minName), 20), text: nil, style: bold},
		{title: "RATE", width: 8, text: measured(func(r Row) string { return rounded.Rate(r.Rate) }), style: bold},
		{title: "0 TO LIMIT", width: minBar, draw: t.bar},
		{title: "GUARANTEE", width: 9, text: func(r Row) string {
			if r.Depth == 0 {
				return ""
			}
			return rounded.Amount(r.Guarantee)
		}, style: plain},
		{title: "CEILING", width: 8, text: func(r Row) string { return rounded.Amount(r.Ceiling) }, style: plain},
		{title: "BORROWED", width: 9, text: measured(func(r Row) string { return borrowing(r) }), style: func(r Row) lipgloss.Style {
			if r.Lent > r.Borrowed {
				return t.dim
			}
			return t.borrowed
		}},
		{title: "DROPS/s", width: 7, text: measured(func(r Row) string { return rounded.PerSecond(r.Drops) }), style: func(r Row) lipgloss.Style {
			if r.Drops > 0 {
				return t.alarm
			}
			return t.dim
		}},
		{title: "MARKS/s", width: 7, text: measured(func(r Row) string { return rounded.PerSecond(r.Marks) }), style: plain},
		{title: "DELAY", width: 7, text: func(r Row) string { return rounded.Delay(r.Delay) }, style: plain},
		{title: "BACKLOG", width: 7, text: func(r Row) string { return rounded.Bytes(r.Backlog) }, style: plain},
		{title: "HISTORY", width: minSpark, draw: func(r Row, _ uint64, width int) string { return t.spark(r, width) }},
	}
	const group, bar, history = 0, 2, 10
	// In order of importance.
	chosen, used := map[int]bool{}, -1
	for _, i := range []int{0, 1, 2, 5, 6, 3, 8, 7, 4, 9, 10} {
		if need := all[i].width + 1; used+need <= width {
			chosen[i], used = true, used+need
		}
	}
	grow := func(i, most int) {
		if more := min(most-all[i].width, width-used); chosen[i] && more > 0 {
			all[i].width += more
			used += more
		}
	}
	grow(bar, goodBar)
	grow(history, maxSpark)
	grow(group, min(name, maxName))
	grow(bar, maxBar)
	var out []column
	for i, c := range all {
		if chosen[i] {
			out = append(out, c)
		}
	}
	return out
}

// borrowing formats the borrowed or lent rate of a group. Less than a hundredth of
// the guarantee is noise.
func borrowing(r Row) string {
	noise := max(float64(r.Guarantee)/100, 1)
	switch {
	case r.Depth == 0 || r.Path == usage.ControlPath:
		return ""
	case r.Borrowed >= noise:
		return "+" + rounded.Rate(r.Borrowed)
	case r.Lent >= noise:
		return "-" + rounded.Rate(r.Lent)
	}
	return "0"
}

// heading returns the heading of the table.
func (t Theme) heading(cols []column) string {
	var b []string
	for i, c := range cols {
		text := truncate(c.title, c.width, t.signs.more)
		if i == 0 || c.draw != nil {
			text = padRight(text, c.width)
		} else {
			text = padLeft(text, c.width)
		}
		b = append(b, text)
	}
	return t.dim.Render(strings.TrimRight(strings.Join(b, " "), " "))
}

// line returns one row of the table.
func (t Theme) line(cols []column, name string, r Row, limit uint64) string {
	var b []string
	for i, c := range cols {
		switch {
		case c.draw != nil:
			b = append(b, c.draw(r, limit, c.width))
		case i == 0:
			b = append(b, c.style(r).Render(padRight(truncate(name, c.width, t.signs.more), c.width)))
		default:
			text := c.text(r)
			pad := strings.Repeat(" ", max(0, c.width-len(text)))
			if text != "" {
				text = c.style(r).Render(text)
			}
			b = append(b, pad+text)
		}
	}
	return strings.TrimRight(strings.Join(b, " "), " ")
}

// truncate truncates text to width.
func truncate(text string, width int, more string) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	return string(slices.Concat(runes[:max(width-1, 0)], []rune(more)))
}

func padRight(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-len([]rune(text))))
}

func padLeft(text string, width int) string {
	return strings.Repeat(" ", max(0, width-len([]rune(text)))) + text
}
