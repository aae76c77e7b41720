package dashboard

import (
	"context"
	"errors"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/internal/browser"
)

// hosts is the number of hosts, with 50 groups each.
const hosts = 500

func manyCase() bench.Case {
	return bench.Case{
		Name: "live/many",
		Claims: []bench.Claim{
			bench.NewClaim("live/many/paint", "time from the request of the page to hosts with their rates on the screen, the median of five", onScreen),
			bench.NewClaim("live/many/idle", "processor time of the browser on the overview of 500 hosts with 50 groups each", idle),
			bench.NewClaim("live/many/memory", "heap after ten minutes, relative to that after the first", flat),
		},
		Takes: func(quick bool) time.Duration { return 40*time.Second + length(quick) },
		Run: func(ctx context.Context, r *bench.Run) (err error) {
			v, err := open(ctx, hosts, r.Say)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, v.close()) }()
			sheet := r.Sheet(bench.Ours)
			paint, err := v.paint()
			if err != nil {
				return err
			}
			sheet.Set("live/many/paint", paint)
			whole := length(r.Quick)
			first := whole / 10
			before, began := v.processor(), time.Now()
			time.Sleep(first)
			sheet.Set("live/many/idle", 100*(v.processor()-before).Seconds()/time.Since(began).Seconds())
			heap, err := v.heap()
			if err != nil {
				return err
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(whole - first):
			}
			after, err := v.heap()
			if err != nil {
				return err
			}
			sheet.Set("live/many/memory", 100*(after/heap-1))
			sheet.Note("live/many/memory", "%.1f MB, and %.1f MB after %v", heap/1e6, after/1e6, whole)
			return nil
		},
	}
}

// length returns how long a page is kept open.
func length(quick bool) time.Duration {
	if quick {
		return 50 * time.Second
	}
	return 10 * time.Minute
}

// painted records when ten hosts have their rates on the screen, by the page's own clock, which starts
// with the request.
const painted = `new MutationObserver(() => {
	if (!window.painted && document.querySelectorAll("tr[data-key] .busy").length >= 10) requestAnimationFrame(() => { window.painted ??= performance.now(); });
}).observe(document, {subtree: true, childList: true});`

// paint returns the median of five, in seconds.
func (v *viewer) paint() (float64, error) {
	if _, err := chromedp.Call(v.Context(), page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: painted}); err != nil {
		return 0, err
	}
	var all []float64
	for range 5 {
		if err := v.Do(chromedp.Navigate(v.origin)); err != nil {
			return 0, err
		}
		if err := v.until("hosts with their rates", "window.painted > 0", 20*time.Second); err != nil {
			return 0, err
		}
		ms, err := browser.Evaluate[float64](v.Browser, "window.painted")
		if err != nil {
			return 0, err
		}
		all = append(all, ms/1000)
	}
	return bench.Median(all), nil
}

// heap returns the page's heap after a garbage collection.
func (v *viewer) heap() (bytes float64, err error) {
	if _, err := chromedp.Call(v.Context(), heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
		return 0, err
	}
	used, err := chromedp.Call(v.Context(), runtime.GetHeapUsage, cdp.Empty{})
	return used.UsedSize, err
}

// processor returns the processor time of the browser and all its child processes.
func (v *viewer) processor() (sum time.Duration) {
	for _, pid := range bench.Family(chromedp.FromContext(v.Context()).Browser.Process().Pid) {
		sum += bench.Ran(pid)
	}
	return sum
}
