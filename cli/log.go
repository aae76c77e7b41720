package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
)

// logLines prints log records of the packages below as lines for a person, like
// the program's other notes. Services choose their own handler.
type logLines struct {
	mu    *sync.Mutex
	w     io.Writer
	attrs []slog.Attr
}

func newLogLines(w io.Writer) logLines { return logLines{mu: &sync.Mutex{}, w: w} }

// Enabled is part of slog.Handler.
func (l logLines) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// Handle is part of slog.Handler.
func (l logLines) Handle(_ context.Context, r slog.Record) error {
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

// WithAttrs is part of slog.Handler.
func (l logLines) WithAttrs(attrs []slog.Attr) slog.Handler {
	l.attrs = append(l.attrs[:len(l.attrs):len(l.attrs)], attrs...)
	return l
}

// WithGroup is part of slog.Handler; lines have no groups.
func (l logLines) WithGroup(string) slog.Handler { return l }
