package browser

import (
	"image"
	"image/color"
	"testing"
)

// The colours that there is most of stay as they are, and of others the nearest is there.
func TestFewColours(t *testing.T) {
	full := image.NewRGBA(image.Rect(0, 0, 300, 10))
	for x := range 300 {
		for y := range 10 {
			full.Set(x, y, color.RGBA{uint8(min(x, 250)), 10, 20, 255})
		}
	}
	for n := range 200 { // each once
		full.Set(n, 0, color.RGBA{uint8(n), 11, uint8(20 + n%3), 255})
	}
	few := fewColours(full)
	if len(few.Palette) != 256 {
		t.Errorf("there are %d colours", len(few.Palette))
	}
	for x := range 300 {
		for y := range 10 {
			is, was := color.RGBAModel.Convert(few.At(x, y)).(color.RGBA), full.RGBAAt(x, y)
			off := max(is.R, was.R) - min(is.R, was.R)
			if off > 1 || y > 0 && is != was {
				t.Fatalf("at %d, %d is %v, and was %v", x, y, is, was)
			}
		}
	}
}
