package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/lipgloss"

	"headgate/group"
)

// Order is how groups are sorted.
type Order int

// The orders: as in the configuration, nested; by rate; by what is borrowed; by
// drops.
const (
	ByPlan Order = iota
	ByRate
	ByBorrowed
	ByDrops
	orders
)

func (o Order) String() string {
	return [...]string{"as configured", "by rate", "by borrowed", "by drops"}[o]
}

// Options of a drawing.
type Options struct {
	Width int
	// Focus is the only device to show; "" is all.
	Focus string
	Sort  Order
	Theme Theme
}

// Render draws a frame: a heading and the lines below it.
func Render(f Frame, o Options) (heading string, lines []string) {
	devices := slices.DeleteFunc(slices.Clone(f.Devices), func(d Device) bool { return o.Focus != "" && d.Dev != o.Focus })
	name := 0
	for _, d := range devices {
		for _, dir := range d.Directions {
			for _, r := range dir.rows(o.Sort) {
				name = max(name, len(r.name))
			}
		}
	}
	cols := o.Theme.columns(o.Width, name)
	for i, d := range devices {
		if i > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, o.Theme.device(d, o.Width))
		for _, dir := range d.Directions {
			for _, r := range dir.rows(o.Sort) {
				lines = append(lines, o.Theme.line(cols, r.name, r.Row, dir.Total.Ceiling))
			}
		}
		lines = append(lines, o.Theme.warnings(d, o.Width)...)
	}
	return o.Theme.heading(cols), lines
}

// device is the line above a device's groups.
func (t Theme) device(d Device, width int) string {
	if d.Gone {
		return fit2(t.bold.Render(d.Dev)+"  "+t.alarm.Render("has no bandwidth groups any more, or is gone itself"), width)
	}
	var parts []string
	if d.Engine != "" {
		parts = append(parts, string(d.Engine))
	}
	assigned := 0
	for _, dir := range d.Directions {
		parts = append(parts, fmt.Sprintf("%s limit %s", dir.Name, Amount(dir.Total.Ceiling)))
		assigned = max(assigned, dir.Assigned)
	}
	for _, dir := range d.Directions {
		if dir.Spare != "" && dir.Spare != group.Proportional {
			parts = append(parts, fmt.Sprintf("%s lends %s", dir.Name, lending(dir.Spare)))
		}
	}
	switch assigned {
	case 0:
	case 1:
		parts = append(parts, "1 connection assigned")
	default:
		parts = append(parts, fmt.Sprintf("%d connections assigned", assigned))
	}
	return fit2(t.bold.Render(d.Dev)+"  "+t.dim.Render(strings.Join(parts, ", ")), width)
}

func lending(s group.Spare) string {
	if s == group.Equal {
		return "in equal parts"
	}
	return "by priority"
}

// warnings are what is not as it should be.
func (t Theme) warnings(d Device, width int) (out []string) {
	for _, f := range d.Foreign {
		out = append(out, fit2(t.alarm.Render("! not ours: "+f), width))
	}
	for i, c := range d.Drift {
		const most = 3
		if i == most {
			out = append(out, fit2(t.alarm.Render(fmt.Sprintf("! and %d more differences; apply mends them", len(d.Drift)-most)), width))
			break
		}
		out = append(out, fit2(t.alarm.Render("! differs from what was applied: "+c), width))
	}
	return out
}

// fit2 cuts a line that has colours in it.
func fit2(line string, width int) string { return lipgloss.NewStyle().MaxWidth(width).Render(line) }

// named is a row and what it is called in the table.
type named struct {
	name string
	Row
}

// rows are the lines of a direction: the total, the groups, control traffic.
func (d Direction) rows(by Order) []named {
	out := []named{{d.Name, d.Total}}
	if by == ByPlan {
		for _, r := range d.Groups {
			out = append(out, named{strings.Repeat("  ", r.Depth) + r.Path[strings.LastIndexByte(r.Path, '/')+1:], r})
		}
	} else {
		leaves := slices.DeleteFunc(slices.Clone(d.Groups), func(r Row) bool { return !r.Leaf })
		value := map[Order]func(Row) float64{
			ByRate:     func(r Row) float64 { return r.Rate },
			ByBorrowed: func(r Row) float64 { return r.Borrowed - r.Lent },
			ByDrops:    func(r Row) float64 { return r.Drops },
		}[by]
		slices.SortStableFunc(leaves, func(a, b Row) int { return cmp.Compare(value(b), value(a)) })
		for _, r := range leaves {
			out = append(out, named{"  " + r.Path, r})
		}
	}
	if d.Control.Path != "" {
		out = append(out, named{"  " + controlPath, d.Control})
	}
	return out
}
