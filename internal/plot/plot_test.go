package plot

import "testing"

// Curves of times may all be at the first bin, or far apart.
func TestLogarithmicPlot(t *testing.T) {
	for _, last := range []float64{1, 1.5, 40_000} {
		p := Plot{File: "times", LogX: true, YMax: 1, Lines: []Line{{Name: "a", X: []float64{1, 1, last}, Y: []float64{0, 0.5, 1}, Steps: true}}}
		if err := p.Save(t.TempDir()); err != nil {
			t.Errorf("up to %v: %v", last, err)
		}
	}
	bad := Plot{File: "times", LogX: true, Lines: []Line{{Name: "a", X: []float64{0, 1}, Y: []float64{0, 1}}}}
	if err := bad.Save(t.TempDir()); err == nil {
		t.Error("0 on a logarithmic axis is no error")
	}
}
