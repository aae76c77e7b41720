package view

import (
	"math"
	"strings"

	"headgate.dev/headgate/usage"
)

// bar draws a rate on a scale from 0 to the limit: the part within the guarantee
// solid, the borrowed part shaded, the unused part up to the ceiling dotted, and
// a mark at the guarantee.
func (t Theme) bar(r Row, limit uint64, width int) string {
	if width < 1 {
		return ""
	}
	if limit == 0 { // unknown
		return strings.Repeat(" ", width)
	}
	cells := func(bps float64) float64 { return min(bps/float64(limit), 1) * float64(width) }
	rate, guarantee, ceiling := cells(r.Rate), cells(float64(r.Guarantee)), int(math.Round(cells(float64(r.Ceiling))))
	mark := -1
	if r.Guarantee > 0 && r.Guarantee < limit && r.Path != usage.ControlPath {
		mark = min(int(math.Round(guarantee)), width-1)
	}
	own := rate
	if r.Depth > 0 && r.Path != usage.ControlPath {
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
			b.WriteString(t.dim.Render(string(t.signs.unused)))
		default:
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// cell returns the sign for a cell that is filled to part, at most 1.
func (t Theme) cell(part float64) rune {
	n := len(t.signs.fill)
	step := int(math.Round(min(part, 1) * float64(n)))
	if step == 0 {
		return ' '
	}
	return t.signs.fill[step-1]
}

// spark draws the last rates, the latest at the right. The full height is the
// maximum of the rates and the guarantee.
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
