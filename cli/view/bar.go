package view

import (
	"math"
	"strings"
)

// bar draws a rate against what a group may have, where the whole width is the
// limit: what is within the guarantee solid, what is borrowed shaded, room up to
// the ceiling dotted, and a mark where the guarantee ends.
func (t Theme) bar(r Row, limit uint64, width int) string {
	if width < 1 {
		return ""
	}
	if limit == 0 { // it is not known
		return strings.Repeat(" ", width)
	}
	cells := func(bps float64) float64 { return min(bps/float64(limit), 1) * float64(width) }
	rate, guarantee, ceiling := cells(r.Rate), cells(float64(r.Guarantee)), int(math.Round(cells(float64(r.Ceiling))))
	mark := -1
	if r.Guarantee > 0 && r.Guarantee < limit && r.Path != controlPath {
		mark = min(int(math.Round(guarantee)), width-1)
	}
	own := rate
	if r.Depth > 0 && r.Path != controlPath {
		own = min(rate, guarantee)
	}
	var b strings.Builder
	for i := range width {
		at := float64(i)
		switch {
		case i == mark:
			b.WriteString(t.mark.Render(string(t.signs.mark)))
		case at < own && t.cell(own-at) != ' ':
			b.WriteString(t.own.Render(string(t.cell(own - at))))
		case rate >= at+0.5 && rate > own:
			b.WriteString(t.borrowed.Render(string(t.signs.borrowed)))
		case i < ceiling:
			b.WriteString(t.dim.Render(string(t.signs.room)))
		default:
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// cell is the sign for a cell of which part, or all, is filled.
func (t Theme) cell(part float64) rune {
	n := len(t.signs.fill)
	step := int(math.Round(min(part, 1) * float64(n)))
	if step == 0 {
		return ' '
	}
	return t.signs.fill[step-1]
}

// spark draws the last rates, the latest at the right. Its full height is the
// highest of them, or the guarantee if that is more.
func (t Theme) spark(r Row, width int) string {
	h := r.History[max(0, len(r.History)-width):]
	top := float64(r.Guarantee)
	if r.Depth == 0 {
		top = float64(r.Ceiling)
	}
	for _, v := range h {
		top = max(top, v)
	}
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", width-len(h)))
	for _, v := range h {
		n := len(t.signs.spark)
		step := 0
		if top > 0 {
			step = min(int(v/top*float64(n)), n-1)
		}
		b.WriteRune(t.signs.spark[step])
	}
	return t.dim.Render(b.String())
}
