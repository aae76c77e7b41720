// Package plot draws lines and bars, and saves each picture as PNG and SVG.
package plot

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Plot is a picture of lines, or of bars.
type Plot struct {
	File    string // its name without the extension
	Row     string // the row of the table that it belongs to, if there is a table
	Title   string
	Caption string
	// X and Y are the axes, with units: "time (s)".
	X, Y string
	// YMax cuts the axis off, if not 0.
	YMax float64
	// LogX makes the X axis logarithmic; its values are above 0.
	LogX  bool
	Lines []Line
	Bars  *Bars
}

// Line is one curve. Dashed lines are what others are compared with; a paper's
// figures are dotted, with a mark on each.
type Line struct {
	Name   string
	X, Y   []float64
	Colour int // lines of one colour belong together
	Dashed bool
	Steps  bool // the value holds until the next, as in bins
	Paper  bool
}

// Bars are one bar per set in every group.
type Bars struct {
	Groups []string
	Sets   []BarSet
}

// BarSet is the bars of one colour.
type BarSet struct {
	Name   string
	Values []float64 // one a group; negative: there is none
}

// palette has colours that the colour-blind can tell apart (Okabe and Ito).
var palette = []color.Color{
	color.RGBA{0, 114, 178, 255}, color.RGBA{213, 94, 0, 255}, color.RGBA{0, 158, 115, 255}, color.RGBA{204, 121, 167, 255},
	color.RGBA{86, 180, 233, 255}, color.RGBA{230, 159, 0, 255}, color.RGBA{60, 60, 60, 255}, color.RGBA{150, 150, 150, 255},
}

const (
	plotWidth, plotHeight = 20 * vg.Centimeter, 10 * vg.Centimeter
	margin                = 3 * vg.Millimeter
)

// Save draws the plot into dir, as PNG and SVG.
func (p Plot) Save(dir string) (err error) {
	defer func() {
		if p := recover(); p != nil { // a picture is no reason to lose the figures
			err = fmt.Errorf("%v", p)
		}
		if err != nil {
			err = fmt.Errorf("cannot draw %s: %w", p.File, err)
		}
	}()
	drawn, err := p.draw()
	if err != nil {
		return err
	}
	// The one for a page, the other for print.
	dots, curves := vgimg.New(plotWidth, plotHeight), vgsvg.New(plotWidth, plotHeight)
	for _, canvas := range []vg.CanvasSizer{dots, curves} {
		drawn.Draw(draw.Crop(draw.New(canvas), margin, -2*margin, margin, -margin))
	}
	return errors.Join(
		write(filepath.Join(dir, p.File+".png"), vgimg.PngCanvas{Canvas: dots}),
		write(filepath.Join(dir, p.File+".svg"), curves),
	)
}

func write(path string, picture io.WriterTo) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = picture.WriteTo(f)
	return errors.Join(err, f.Close())
}

// ticks has eight marks or so, at round numbers, each with its number.
type ticks struct{}

func (ticks) Ticks(least, most float64) (out []plot.Tick) {
	step := math.Pow(10, math.Floor(math.Log10((most-least)/4)))
	for _, m := range []float64{1, 2, 2.5, 5, 10} {
		if (most-least)/(step*m) <= 8 {
			step *= m
			break
		}
	}
	for i := math.Ceil(least / step); i*step <= most+step/1e6; i++ {
		out = append(out, plot.Tick{Value: i * step, Label: strconv.FormatFloat(i*step, 'g', 6, 64)})
	}
	return out
}

func (p Plot) draw() (*plot.Plot, error) {
	out := plot.New()
	out.Title.Text, out.X.Label.Text, out.Y.Label.Text = p.Title, p.X, p.Y
	out.Title.Padding = 2 * vg.Millimeter
	out.X.Tick.Marker, out.Y.Tick.Marker = ticks{}, ticks{}
	out.Legend.Top, out.Legend.XOffs = true, -margin
	out.Legend.ThumbnailWidth = 8 * vg.Millimeter
	out.Y.Min = 0
	grid := plotter.NewGrid()
	grid.Vertical.Width = 0
	grid.Horizontal.Color = color.Gray{220}
	out.Add(grid)
	for _, l := range p.Lines {
		if err := l.add(out); err != nil {
			return nil, err
		}
	}
	if p.Bars != nil {
		if err := p.Bars.add(out); err != nil {
			return nil, err
		}
	}
	if p.LogX {
		out.X.Scale, out.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
		// A decade at least: of a single value the library's own range begins at 0.
		out.X.Max = max(out.X.Max, 10*out.X.Min)
	}
	out.Y.Min = 0
	if p.YMax > 0 {
		out.Y.Max = p.YMax
	}
	// Room for the legend above the curves.
	out.Y.Max *= 1 + 0.08*float64(p.legendLines())
	return out, nil
}

func (p Plot) legendLines() int {
	n := 0
	for _, l := range p.Lines {
		if l.Name != "" {
			n++
		}
	}
	if p.Bars != nil {
		n += len(p.Bars.Sets) + 1 // and a bar's own figure
	}
	return n
}

func (l Line) add(to *plot.Plot) error {
	xy := make(plotter.XYs, len(l.X))
	for i := range l.X {
		xy[i].X, xy[i].Y = l.X[i], l.Y[i]
	}
	line, err := plotter.NewLine(xy)
	if err != nil {
		return err
	}
	line.Color = palette[l.Colour%len(palette)]
	line.Width = vg.Points(1.3)
	if l.Dashed {
		line.Width = vg.Points(0.9)
		line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
	}
	if l.Steps {
		line.StepStyle = plotter.PostStep
	}
	if l.Paper {
		return l.addPaper(to, line, xy)
	}
	to.Add(line)
	if l.Name != "" {
		to.Legend.Add(l.Name, line)
	}
	return nil
}

// addPaper draws what a paper found, so that it is not taken for ours.
func (l Line) addPaper(to *plot.Plot, line *plotter.Line, xy plotter.XYs) error {
	line.Dashes = []vg.Length{vg.Points(1), vg.Points(2)}
	marks, err := plotter.NewScatter(xy)
	if err != nil {
		return err
	}
	marks.Shape, marks.Color, marks.Radius = draw.CrossGlyph{}, line.Color, vg.Points(2.5)
	to.Add(line, marks)
	if l.Name != "" {
		to.Legend.Add(l.Name, line, marks)
	}
	return nil
}

// labelled is the width from which bars have their values above them: on narrower
// ones they would be written over each other.
const labelled = 6 * vg.Millimeter

func (b Bars) add(to *plot.Plot) error {
	width := 14 * vg.Centimeter / vg.Length(len(b.Groups)*(len(b.Sets)+1))
	width = min(width, 1.6*vg.Centimeter)
	for i, set := range b.Sets {
		values := make(plotter.Values, len(set.Values))
		for j, v := range set.Values {
			values[j] = max(v, 0)
		}
		bars, err := plotter.NewBarChart(values, width)
		if err != nil {
			return err
		}
		bars.LineStyle.Width = 0
		bars.Color = palette[i%len(palette)]
		bars.Offset = width * (vg.Length(i) - vg.Length(len(b.Sets)-1)/2)
		to.Add(bars)
		to.Legend.Add(set.Name, bars)
		if width < labelled {
			continue
		}
		if err := b.label(to, set, bars.Offset); err != nil {
			return err
		}
	}
	to.NominalX(b.Groups...)
	return nil
}

// label writes each bar's value above it.
func (b Bars) label(to *plot.Plot, set BarSet, offset vg.Length) error {
	at := plotter.XYLabels{}
	for i, v := range set.Values {
		text := "none"
		if v >= 0 {
			if text = strconv.FormatFloat(v, 'g', 3, 64); v >= 1000 {
				text = strconv.FormatFloat(v, 'f', 0, 64) // no exponent
			}
		}
		at.XYs = append(at.XYs, plotter.XY{X: float64(i), Y: max(v, 0)})
		at.Labels = append(at.Labels, text)
	}
	labels, err := plotter.NewLabels(at)
	if err != nil {
		return err
	}
	labels.Offset = vg.Point{X: offset, Y: vg.Points(2)}
	for i := range labels.TextStyle {
		labels.TextStyle[i].XAlign = draw.XCenter
		labels.TextStyle[i].Font.Size = vg.Points(8)
	}
	to.Add(labels)
	return nil
}

// Level is a dashed line at y from x0 to x1.
func Level(name string, y, x0, x1 float64, colour int) Line {
	return Line{Name: name, X: []float64{x0, x1}, Y: []float64{y, y}, Colour: colour, Dashed: true}
}

// PaperLevel is a paper's figure that holds from x0 to x1.
func PaperLevel(name string, y, x0, x1 float64, colour int) Line {
	l := Level(name, y, x0, x1, colour)
	l.Paper = true
	return l
}
