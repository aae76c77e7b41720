package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/vishvananda/netlink"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/internal/browser"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// Chosen by this project.
const (
	steps  = 10             // of the rate
	step   = 40 * unit.Mbit // up or down
	noStep = step / 2       // threshold between the two rates
)

func liveCase(d *bench.Draw) bench.Case {
	drawn := d.For("live")
	return bench.Case{
		Name: "live/step",
		Claims: []bench.Claim{
			bench.NewClaim("live/step", "time from the first packet at a new rate in the kernel to that rate on the screen, the slowest of ten", onScreen),
		},
		Takes: func(bool) time.Duration { return 40 * time.Second },
		Run: func(ctx context.Context, r *bench.Run) (err error) {
			v, err := open(ctx, 0, r.Say)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, v.close()) }()
			page := v.origin + "/hosts/host/" + url.PathEscape(v.scene.Dev())
			if err := v.Do(chromedp.Navigate(page), chromedp.WaitVisible(`tr[data-key^="web "] .busy`)); err != nil {
				return err
			}
			if _, err := v.Is(watching); err != nil {
				return err
			}
			var slowest time.Duration
			for n := range steps {
				time.Sleep(time.Duration(drawn.Int(2000, 3000)) * time.Millisecond) // not synchronous with the page
				took, err := v.step(ctx, n)
				if err != nil {
					return err
				}
				slowest = max(slowest, took)
			}
			r.Sheet(bench.Ours).Set("live/step", slowest.Seconds())
			return nil
		},
	}
}

// watching records, by the machine's clock, when the rate on the screen exceeds a threshold.
const watching = `(() => {
	const rate = () => {
		const m = /([0-9.]+) ([kMG]?)bit\/s/.exec(document.querySelector('tr[data-key^="web "] .busy')?.innerText ?? "");
		return m ? Number(m[1]) * {"": 1, k: 1e3, M: 1e6, G: 1e9}[m[2]] : 0;
	};
	window.over = 0;
	new MutationObserver(() => {
		if (window.over === 0 && rate() > window.above) window.over = Date.now();
	}).observe(document.querySelector("main"), {subtree: true, childList: true, characterData: true});
	window.wait = (above) => { window.above = above; window.over = 0; };
	return true;
})()`

// step sends at a rate for a while, starting from 0.
func (v *viewer) step(ctx context.Context, n int) (time.Duration, error) {
	if _, err := v.Is(fmt.Sprintf("wait(%d); true", int64(noStep))); err != nil {
		return 0, err
	}
	f, err := traffic.Start(ctx, v.scene.Lab().Host, []traffic.Flow{{Name: fmt.Sprint("step", n), From: "host", To: "caller", Protocol: traffic.UDP, DstPort: 443, Schedule: traffic.Constant(step)}},
		traffic.Options{Duration: 10 * time.Second})
	if err != nil {
		return 0, err
	}
	defer func() { f.Stop(); f.Wait() }()
	began, err := v.first(ctx)
	if err != nil {
		return 0, err
	}
	if err := v.until("the rate on the screen", "over > 0", 10*time.Second); err != nil {
		return 0, err
	}
	over, err := browser.Evaluate[float64](v.Browser, "over")
	return time.UnixMilli(int64(over)).Sub(began), err
}

// first returns when the device's counter in the kernel starts to increase at such a rate.
func (v *viewer) first(ctx context.Context) (time.Time, error) {
	node := v.scene.Lab().Node("host")
	sent := func() (n uint64, err error) {
		err = node.Do(func() error {
			l, err := netlink.LinkByName(v.scene.Dev())
			if err == nil {
				n = l.Attrs().Statistics.TxBytes
			}
			return err
		})
		return n, err
	}
	last, err := sent()
	if err != nil {
		return time.Time{}, err
	}
	const every = 5 * time.Millisecond
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end) && ctx.Err() == nil; {
		at := time.Now()
		time.Sleep(every)
		now, err := sent()
		if err != nil {
			return at, err
		}
		if float64(now-last)*8 > float64(noStep)*every.Seconds() {
			return at, nil
		}
		last = now
	}
	return time.Time{}, errors.New("nothing was sent")
}
