// Package browser drives a headless Chromium, and minds what goes wrong in it.
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

// Browser is one, with one page.
type Browser struct {
	ctx    context.Context
	cancel context.CancelFunc
	origin string

	mu       sync.Mutex
	wrong    []string
	expected []string
}

// Start opens a page for an origin, such as https://127.0.0.1:8420, whatever its certificate.
func Start(ctx context.Context, origin string) (*Browser, error) {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.IgnoreCertErrors, chromedp.WindowSize(1440, 900))
	options = append(options, chromedp.NoSandbox) // Chromium does not run as root with one
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
		return nil, fmt.Errorf("chromium: %w (is the package chromium there?)", err)
	}
	return b, nil
}

// Close ends it.
func (b *Browser) Close() { b.cancel() }

// Do runs actions in turn.
func (b *Browser) Do(steps ...chromedp.Action[chromedp.Void]) error {
	return chromedp.Do(b.ctx, steps...)
}

// Is tells what a script says that is true or false.
func (b *Browser) Is(script string) (bool, error) { return Evaluate[bool](b, script) }

// Evaluate is what a script gives, or what it promises.
func Evaluate[T any](b *Browser, script string) (T, error) {
	return chromedp.Run(b.ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
}

// Context is the page's.
func (b *Browser) Context() context.Context { return b.ctx }

// Looks are those that a page has. The last is that of a browser which has begun.
var Looks = []struct {
	Name          string
	Width, Height int64
	Dark          bool
}{{"dark", 1440, 900, true}, {"narrow", 400, 860, false}, {"light", 1440, 900, false}}

// Look is how it looks from now on: so wide and high, and dark or not.
func (b *Browser) Look(width, height int64, dark bool) error {
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

// Expect has what goes wrong with such words in it be as it should be.
func (b *Browser) Expect(words string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected = append(b.expected, words)
}

// Wrong is what has gone wrong: errors that a page says or does not catch, violations of its policy, and
// requests to another origin.
func (b *Browser) Wrong() []string {
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
