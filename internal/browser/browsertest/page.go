// Package browsertest has the steps of tests that use a page in a browser.
package browsertest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"headgate.dev/headgate/internal/browser"
)

// patience is how long a page may take for a step.
const patience = 40 * time.Second

// Page is a page of a test. Its methods end the test when a step fails.
type Page struct {
	T testing.TB
	*browser.Browser
}

// Open starts a browser for an origin, such as https://127.0.0.1:8420, and ends it with the test.
func Open(t testing.TB, origin string) Page {
	t.Helper()
	b, err := browser.Start(t.Context(), origin)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return Page{t, b}
}

// Take takes steps in sequence. what names them if they fail or do not end.
func (p Page) Take(what string, steps ...chromedp.Action[chromedp.Void]) {
	p.T.Helper()
	done := make(chan error, 1)
	go func() { done <- p.Do(steps...) }()
	select {
	case err := <-done:
		if err != nil {
			p.T.Fatalf("%s: %v\n%s", what, err, p.Text())
		}
	case <-time.After(patience):
		p.T.Fatalf("%s: not within %v\n%s", what, patience, p.Text())
	}
}

// Text returns all text on the page.
func (p Page) Text() string { return Value[string](p, "document.body.innerText") }

// Value returns the value of a script.
func Value[T any](p Page, script string) T {
	p.T.Helper()
	v, err := browser.Evaluate[T](p.Browser, script)
	if err != nil {
		p.T.Fatalf("%s: %v", script, err)
	}
	return v
}

// Until waits until a script returns true. what names it if it does not.
func (p Page) Until(what, script string) {
	p.T.Helper()
	for end := time.Now().Add(patience); !Value[bool](p, script); time.Sleep(30 * time.Millisecond) {
		if time.Now().After(end) {
			p.T.Fatalf("%s: not within %v\n%s\n%v", what, patience, p.Text(), p.Errors())
		}
	}
}

// CheckAppearances checks the page for accessibility violations and horizontal overflow, in a light, a dark and a narrow window. It
// calls also, unless that is nil, in each.
func (p Page) CheckAppearances(name string, also func()) {
	p.T.Helper()
	axe, err := exec.Command(filepath.Join(module(p.T), "scripts/axe")).Output()
	if err != nil {
		p.T.Fatal(err)
	}
	for _, look := range browser.Viewports {
		if err := p.SetViewport(look.Width, look.Height, look.Dark); err != nil {
			p.T.Fatal(err)
		}
		found, err := p.Violations(strings.TrimSpace(string(axe)))
		if err != nil || len(found) > 0 {
			p.T.Errorf("%s, %s: %v %s", name, look.Name, err, strings.Join(found, "\n"))
		}
		p.CheckWidth(name + ", " + look.Name)
		if also != nil {
			also()
		}
	}
}

// CheckWidth checks the page for horizontal overflow.
func (p Page) CheckWidth(name string) {
	p.T.Helper()
	if over := Value[float64](p, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
		p.T.Errorf("%s: %v px of horizontal overflow", name, over)
	}
}

// module returns the folder of the module, which is above that of the test.
func module(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("the test runs outside of the module")
		}
		dir = filepath.Dir(dir)
	}
}
