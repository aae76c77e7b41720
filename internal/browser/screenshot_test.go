package browser

import (
	"image"
	"image/color"
	"testing"
)

// The most frequent colours stay exact, and other colours are replaced by the nearest.
func TestFewColours(t *testing.T) {
	full := image.NewRGBA(image.Rect(0, 0, 300, 10))
	for x := range 300 {
		for y := range 10 {
			full.Set(x, y, color.RGBA{uint8(min(x, 250)), 10, 20, 255})
		}
	}
	for n := range 200 { // each colour once
		full.Set(n, 0, color.RGBA{uint8(n), 11, uint8(20 + n%3), 255})
	}
	few := quantize(full)
	if len(few.Palette) != 256 {
		t.Errorf("%d colours, want 256", len(few.Palette))
	}
	for x := range 300 {
		for y := range 10 {
			is, was := color.RGBAModel.Convert(few.At(x, y)).(color.RGBA), full.RGBAAt(x, y)
			off := max(is.R, was.R) - min(is.R, was.R)
			if off > 1 || y > 0 && is != was {
				t.Fatalf("pixel %d, %d is %v, was %v", x, y, is, was)
			}
		}
	}
}
