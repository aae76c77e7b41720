package dashboard

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"strings"
	"time"

	"github.com/chromedp/chromedp"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/internal/browser"
)

func pagesCase() bench.Case {
	return bench.Case{
		Name: "pages",
		Claims: []bench.Claim{
			bench.NewClaim("a11y/violations", "violations that axe-core finds on all pages, light, dark and 400 px wide", none),
			bench.NewClaim("size/bundle", "size of everything that a browser loads for the pages, gzipped", bundle),
			bench.NewClaim("size/errors", "errors on the console and violations of the policy, on all pages", none),
			bench.NewClaim("size/origins", "requests to another origin", none),
		},
		Takes: func(bool) time.Duration { return 40 * time.Second },
		Run: func(ctx context.Context, r *bench.Run) (err error) {
			v, err := open(ctx, 3, r.Say)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, v.close()) }()
			if err := v.scene.Put(ctx, "/v1/tenants/"+tenant, map[string]any{}); err != nil {
				return err
			}
			sheet := r.Sheet(bench.Ours)
			axe, err := axeCore(ctx)
			if err != nil {
				sheet.Fail(err)
			}
			keptOut := 0
			for _, path := range []string{"/", "/hosts/host", "/hosts/host/" + url.PathEscape(v.scene.Dev()), "/tenants", "/tenants/" + tenant, "/collectives", "/collectives/host", "/relays", "/relays/host", "/network", "/probes", "/events"} {
				if err := v.Do(chromedp.Navigate(v.origin+path), chromedp.WaitVisible("main h1")); err != nil {
					return err
				}
				time.Sleep(2 * time.Second)
				if axe == "" {
					continue
				}
				found, err := v.violations(axe)
				if err != nil {
					return err
				}
				keptOut += len(found)
				for _, one := range found {
					sheet.Note("a11y/violations", "%s: %s", path, one)
				}
			}
			if axe != "" {
				sheet.Set("a11y/violations", float64(keptOut))
			}
			wrong, others := 0, 0
			for _, one := range v.Errors() {
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

// tenant is a tenant with a page.
const tenant = "shop"

// axeCore returns the path of axe-core in the source tree.
func axeCore(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "scripts/axe").Output()
	if err != nil {
		return "", fmt.Errorf("cannot find axe-core: run the benchmark in the source tree, with npm installed: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// violations returns those of a page in all of its appearances.
func (v *viewer) violations(axe string) (all []string, err error) {
	for _, look := range browser.Viewports {
		if err := v.SetViewport(look.Width, look.Height, look.Dark); err != nil {
			return nil, err
		}
		found, err := v.Violations(axe)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// bundle returns the size of the page and of its assets.
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
		return 0, errors.New("the page has no assets")
	}
	return all.Len(), nil
}
