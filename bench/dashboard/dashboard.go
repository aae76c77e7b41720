// Package dashboard measures the dashboard in a headless Chromium: how soon a rate is on the screen,
// the cost of 25,000 groups, the size of the page, and access by other origins.
package dashboard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/chromedp/chromedp"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/bench/service"
	"headgate.dev/headgate/internal/browser"
)

// Bench returns the bench with every target of the dashboard.
func Bench(d *bench.Draw) bench.Bench {
	return bench.Bench{
		Name: "dashboard", Title: "The dashboard", About: about, Rows: rows, Seed: d.Seed(),
		Cases: []bench.Case{liveCase(d), manyCase(), pagesCase()},
		Tools: [][]string{{"chromium", "--version"}},
	}
}

const about = `The service is "headgate controller" with its store, in a namespace; its hosts are real streams over
mutual TLS, 50 groups each, one of them with an enforcing agent. The browser is headless Chromium, which
renders on the processor; its processor time is that of all its processes. The requirements on use and installation
are checked by tests: TestDashboard uses the dashboard by keyboard, as an operator, a tenant and a
foreign origin, and checks the shaping with iperf3; other tests install the packages.`

// rows are the rows of the table of targets.
var rows = []bench.Row{
	{ID: "live", What: "a rate change in the kernel is on the screen in <= 1.5 s; 25,000 groups: first paint <= 1.5 s, <= 5 % of a core while idle on a page, memory flat over 10 minutes"},
	{ID: "a11y", What: "axe-core: no violation on any page; every action by keyboard (TestDashboard)"},
	{ID: "size", What: "bundle <= 150 KB gzipped, no console error, no CSP report, no request to any other origin"},
}

// Targets of the dashboard.
var (
	onScreen = bench.Target{Op: "<=", Value: 1.5, Unit: "s"}
	idle     = bench.Target{Op: "<=", Value: 5, Unit: "% of a core"}
	bundle   = bench.Target{Op: "<=", Value: 150, Unit: "KB"}
	none     = bench.Target{Op: "<=", Value: 0, Unit: "of them"}
	// flat: the heap after a garbage collection varies by some hundred kilobytes. The value is chosen
	// by this project.
	flat = bench.Target{Op: "<=", Value: 5, Unit: "% more"}
)

// viewer is a browser that is signed in to a scene.
type viewer struct {
	*browser.Browser
	scene  *service.Scene
	origin string
	end    context.CancelFunc
}

func open(ctx context.Context, hosts int, say func(string, ...any)) (_ *viewer, err error) {
	ctx, end := context.WithCancel(ctx)
	v := &viewer{end: end}
	defer func() {
		if err != nil {
			err = errors.Join(err, v.close())
		}
	}()
	if v.scene, err = service.OpenScene(ctx, hosts, say); err != nil {
		return v, err
	}
	address, err := browser.Forward(ctx, v.scene.Dial)
	if err != nil {
		return v, err
	}
	v.origin = "https://" + address
	if v.Browser, err = browser.Start(ctx, v.origin); err != nil {
		return v, err
	}
	signIn, stop := context.WithTimeout(v.Context(), 30*time.Second)
	defer stop()
	err = chromedp.Do(signIn, chromedp.Navigate(v.origin), chromedp.WaitVisible("#token"),
		chromedp.SendKeys("#token", v.scene.Token()+"\r"), chromedp.WaitVisible("nav[aria-label=Pages]"))
	if err != nil {
		err = fmt.Errorf("cannot sign in: %w %q", err, v.Errors())
	}
	return v, err
}

func (v *viewer) close() (err error) {
	if v.Browser != nil {
		v.Browser.Close()
	}
	if v.scene != nil {
		err = v.scene.Close()
	}
	v.end()
	return err
}

// until waits until a script returns true.
func (v *viewer) until(what, script string, within time.Duration) error {
	for end := time.Now().Add(within); ; time.Sleep(20 * time.Millisecond) {
		is, err := v.Is(script)
		if err != nil || is {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s: not within %v", what, within)
		}
	}
}
