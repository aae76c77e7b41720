// Package logtext prints log records as lines of text, in the format of the other messages of commands. Services
// have slog's own handlers.
package logtext

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
)

// Handler is a slog.Handler that prints "headgate: message: key value, key value", with the level before the
// message if it is a warning or an error.
type Handler struct {
	mu    *sync.Mutex
	w     io.Writer
	attrs []slog.Attr
}

// NewHandler returns a handler that prints to w.
func NewHandler(w io.Writer) Handler { return Handler{mu: &sync.Mutex{}, w: w} }

// Enabled implements slog.Handler.
func (h Handler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo
}

// Handle implements slog.Handler.
func (h Handler) Handle(_ context.Context, r slog.Record) error {
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
	for _, a := range h.attrs {
		add(a)
	}
	r.Attrs(add)
	b.WriteByte('\n')
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := io.WriteString(h.w, b.String())
	return err
}

// WithAttrs implements slog.Handler.
func (h Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.attrs = append(h.attrs[:len(h.attrs):len(h.attrs)], attrs...)
	return h
}

// WithGroup implements slog.Handler. Groups are ignored.
func (h Handler) WithGroup(string) slog.Handler { return h }
