package dashboard

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/chromedp/chromedp"

	"headgate/bench"
	"headgate/internal/browser"
)

func sizeCase() bench.Case {
	return bench.Case{
		Name: "size",
		Claims: []bench.Claim{
			bench.NewClaim("size/bundle", "all that a browser fetches for its pages, gzipped", bundle),
			bench.NewClaim("size/errors", "errors on the console and violations of the policy, on all pages", none),
			bench.NewClaim("size/origins", "requests to another origin", none),
		},
		Takes: func(bool) time.Duration { return 30 * time.Second },
		Run: func(ctx context.Context, r *bench.Run) (err error) {
			v, err := open(ctx, 3, r.Say)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, v.close()) }()
			for _, path := range []string{"/", "/hosts/host", "/hosts/host/" + url.PathEscape(v.scene.Dev()), "/tenants", "/collectives", "/collectives/host", "/probes", "/events"} {
				if err := v.Do(chromedp.Navigate(v.origin+path), chromedp.WaitVisible("main h1")); err != nil {
					return err
				}
				time.Sleep(2 * time.Second)
			}
			sheet := r.Sheet(bench.Ours)
			wrong, others := 0, 0
			for _, one := range v.Wrong() {
				if strings.HasPrefix(one, "another origin") {
					others++
					sheet.Note("size/origins", "%s", one)
					continue
				}
				wrong++
				sheet.Note("size/errors", "%s", one)
			}
			sheet.Set("size/errors", float64(wrong))
			sheet.Set("size/origins", float64(others))
			bytes, err := v.bundle(ctx)
			sheet.Set("size/bundle", float64(bytes)/1000)
			return err
		},
	}
}

// bundle is the size of the page and what it names.
func (v *viewer) bundle(ctx context.Context) (int, error) {
	assets, err := browser.Evaluate[[]string](v.Browser, `["/", ...performance.getEntriesByType("resource").map((r) => new URL(r.name).pathname).filter((n) => n.startsWith("/assets/"))]`)
	if err != nil {
		return 0, err
	}
	var all bytes.Buffer
	for _, at := range assets {
		text, err := v.scene.Get(ctx, at)
		if err != nil {
			return 0, err
		}
		z := gzip.NewWriter(&all)
		if _, err := z.Write(text); err != nil {
			return 0, err
		}
		if err := z.Close(); err != nil {
			return 0, err
		}
	}
	if len(assets) < 3 {
		return 0, errors.New("a page names no assets")
	}
	return all.Len(), nil
}
