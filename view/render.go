package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/lipgloss"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/unit/rounded"
	"headgate.dev/headgate/usage"
)

// Order is the sort order of groups.
type Order int

// The orders: nested as in the configuration, by rate, by borrowed rate, by drops.
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

// Options are the options of Render.
type Options struct {
	Width int
	// Focus is the device to show. "" is all devices.
	Focus string
	Sort  Order
	Theme Theme
}

// Render draws a frame. It returns a heading and the lines below.
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

// device returns the line above a device's groups.
func (t Theme) device(d Device, width int) string {
	if d.Removed {
		return truncateStyled(t.bold.Render(d.Dev)+"  "+t.alarm.Render("bandwidth groups or device removed"), width)
	}
	var parts []string
	if d.Engine != "" {
		parts = append(parts, string(d.Engine))
	}
	assigned := 0
	for _, dir := range d.Directions {
		parts = append(parts, fmt.Sprintf("%s limit %s", dir.Name, rounded.Amount(dir.Total.Ceiling)))
		assigned = max(assigned, dir.Assigned)
	}
	for _, dir := range d.Directions {
		if dir.Spare != "" && dir.Spare != group.Proportional {
			parts = append(parts, fmt.Sprintf("%s spare policy %s", dir.Name, spareText(dir.Spare)))
		}
	}
	switch assigned {
	case 0:
	case 1:
		parts = append(parts, "1 connection assigned")
	default:
		parts = append(parts, fmt.Sprintf("%d connections assigned", assigned))
	}
	return truncateStyled(t.bold.Render(d.Dev)+"  "+t.dim.Render(strings.Join(parts, ", ")), width)
}

func spareText(s group.Spare) string {
	if s == group.Equal {
		return "equal"
	}
	return "priority"
}

// warnings returns lines about foreign traffic control and drift.
func (t Theme) warnings(d Device, width int) (out []string) {
	for _, f := range d.Foreign {
		out = append(out, truncateStyled(t.alarm.Render("! foreign: "+f), width))
	}
	for i, c := range d.Drift {
		const most = 3
		if i == most {
			out = append(out, truncateStyled(t.alarm.Render(fmt.Sprintf("! drift: %d more changes; \"headgate apply\" reverts them", len(d.Drift)-most)), width))
			break
		}
		out = append(out, truncateStyled(t.alarm.Render("! drift: "+c), width))
	}
	return out
}

// truncateStyled truncates a line with colours to width.
func truncateStyled(line string, width int) string {
	return lipgloss.NewStyle().MaxWidth(width).Render(line)
}

// namedRow is a row with its name in the table.
type namedRow struct {
	name string
	Row
}

// rows returns the rows of a direction: total, groups, control traffic.
func (d Direction) rows(by Order) []namedRow {
	out := []namedRow{{d.Name, d.Total}}
	if by == ByPlan {
		for _, r := range d.Groups {
			out = append(out, namedRow{strings.Repeat("  ", r.Depth) + r.Path[strings.LastIndexByte(r.Path, '/')+1:], r})
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
			out = append(out, namedRow{"  " + r.Path, r})
		}
	}
	if d.Control.Path != "" {
		out = append(out, namedRow{"  " + usage.ControlPath, d.Control})
	}
	return out
}
