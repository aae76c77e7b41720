package browser

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"slices"

	"github.com/chromedp/chromedp"
)

// Screenshot returns a screenshot of the page as a PNG with at most 256 colours: a page has few
// colours, and the file is a third of the size.
func (b *Browser) Screenshot() ([]byte, error) {
	text, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		return nil, err
	}
	full, err := png.Decode(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, quantize(full))
	return out.Bytes(), err
}

// quantize keeps the most frequent colours and replaces each other colour by the nearest of
// these.
func quantize(of image.Image) *image.Paletted {
	at := of.Bounds()
	all := image.NewRGBA(at)
	draw.Draw(all, at, of, at.Min, draw.Src)
	count := map[color.RGBA]int{}
	for n := 0; n < len(all.Pix); n += 4 {
		count[color.RGBA{all.Pix[n], all.Pix[n+1], all.Pix[n+2], 255}]++
	}
	often := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(count[b]-count[a], cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	palette := color.Palette{}
	for _, c := range often[:min(256, len(often))] {
		palette = append(palette, c)
	}
	index := map[color.RGBA]uint8{}
	for _, c := range often {
		index[c] = uint8(palette.Index(c))
	}
	out := image.NewPaletted(at, palette)
	for n := range out.Pix {
		out.Pix[n] = index[color.RGBA{all.Pix[4*n], all.Pix[4*n+1], all.Pix[4*n+2], 255}]
	}
	return out
}
