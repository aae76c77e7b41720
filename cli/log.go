package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
)

// textHandler is a slog.Handler that prints records as lines of text, in the format of the command's
// other messages. Agent and controller use their own handler.
type textHandler struct {
	mu    *sync.Mutex
	w     io.Writer
	attrs []slog.Attr
}

func newLogLines(w io.Writer) textHandler { return textHandler{mu: &sync.Mutex{}, w: w} }

// Enabled implements slog.Handler.
func (l textHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo
}

// Handle implements slog.Handler.
func (l textHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString("headgate: ")
	switch {
	case r.Level >= slog.LevelError:
		b.WriteString("error: ")
	case r.Level >= slog.LevelWarn:
		b.WriteString("warning: ")
	}
	b.WriteString(r.Message)
	sep := ": "
	add := func(a slog.Attr) bool {
		fmt.Fprintf(&b, "%s%s %v", sep, a.Key, a.Value)
		sep = ", "
		return true
	}
	for _, a := range l.attrs {
		add(a)
	}
	r.Attrs(add)
	b.WriteByte('\n')
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := io.WriteString(l.w, b.String())
	return err
}

// WithAttrs implements slog.Handler.
func (l textHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	l.attrs = append(l.attrs[:len(l.attrs):len(l.attrs)], attrs...)
	return l
}

// WithGroup implements slog.Handler. Groups are ignored.
func (l textHandler) WithGroup(string) slog.Handler { return l }
