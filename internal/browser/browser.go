// Package browser drives a headless Chromium and records errors that occur in it.
package browser

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Browser is a running Chromium with one page.
type Browser struct {
	ctx    context.Context
	cancel context.CancelFunc
	origin string

	mu       sync.Mutex
	wrong    []string
	expected []string
}

// Start opens a page for an origin, such as https://127.0.0.1:8420, and accepts any certificate.
func Start(ctx context.Context, origin string) (*Browser, error) {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.IgnoreCertErrors, chromedp.WindowSize(1440, 900))
	options = append(options, chromedp.NoSandbox) // Chromium's sandbox does not work as root
	ctx, end := chromedp.NewExecAllocator(ctx, options...)
	ctx, close := chromedp.NewContext(ctx)
	b := &Browser{ctx: ctx, origin: origin, cancel: func() { close(); end() }}
	err := chromedp.Listen(ctx, b.listen)
	if err == nil {
		_, err = chromedp.Call(ctx, network.Enable, network.EnableParams{})
	}
	if err == nil {
		_, err = chromedp.Call(ctx, log.Enable, cdp.Empty{})
	}
	if err != nil {
		b.cancel()
		return nil, fmt.Errorf("cannot start chromium: %w (is the package chromium installed?)", err)
	}
	return b, nil
}

// Close ends the browser.
func (b *Browser) Close() { b.cancel() }

// Do runs actions in sequence.
func (b *Browser) Do(steps ...chromedp.Action[chromedp.Void]) error {
	return chromedp.Do(b.ctx, steps...)
}

// Is evaluates a boolean script.
func (b *Browser) Is(script string) (bool, error) { return Evaluate[bool](b, script) }

// Evaluate returns the result of a script; it waits for a promise.
func Evaluate[T any](b *Browser, script string) (T, error) {
	return chromedp.Run(b.ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
}

// Context is the context of the page.
func (b *Browser) Context() context.Context { return b.ctx }

// Viewports are the window sizes and colour schemes that a page is tested with. The last one is that of
// a new browser.
var Viewports = []struct {
	Name          string
	Width, Height int64
	Dark          bool
}{{"dark", 1440, 900, true}, {"narrow", 400, 860, false}, {"light", 1440, 900, false}}

// SetViewport sets the window size and the colour scheme.
func (b *Browser) SetViewport(width, height int64, dark bool) error {
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	if err != nil {
		return err
	}
	return b.Do(chromedp.EmulateViewport(width, height))
}

// IgnoreErrors ignores errors that contain words.
func (b *Browser) IgnoreErrors(words string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected = append(b.expected, words)
}

// Errors returns the errors so far: console errors, uncaught exceptions, violations of the content
// security policy, and requests to another origin.
func (b *Browser) Errors() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string{}, b.wrong...)
}

func (b *Browser) listen(event any) {
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type != runtime.ConsoleAPICalledTypeError {
			return
		}
		var words []string
		for _, a := range e.Args {
			words = append(words, string(a.Value)+a.Description)
		}
		b.add("console: " + strings.Join(words, " "))
	case *runtime.EventExceptionThrown:
		what := e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			what += " " + x.Description
		}
		b.add("exception: " + what)
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError {
			b.add(fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	case *network.EventRequestWillBeSent:
		if at := e.Request.URL; !strings.HasPrefix(at, b.origin+"/") && !strings.HasPrefix(at, "data:") && !strings.HasPrefix(at, "blob:"+b.origin) && at != "about:blank" {
			b.add("another origin: " + at)
		}
	}
}

func (b *Browser) add(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, words := range b.expected {
		if strings.Contains(what, words) {
			return
		}
	}
	b.wrong = append(b.wrong, what)
}
