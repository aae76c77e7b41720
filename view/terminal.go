package view

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"golang.org/x/term"

	"headgate.dev/headgate/internal/sleep"
)

// Width reports whether out is a terminal that can show a live view, and its width.
func Width(out io.Writer) (width int, live bool) {
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return 0, false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	return max(width, 32), err == nil // the minimum of Render
}

// Run shows a screen until the user quits or ctx ends.
func Run(ctx context.Context, screen tea.Model, in io.Reader, out io.Writer) error {
	_, err := tea.NewProgram(screen, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithAltScreen(), tea.WithoutSignalHandler()).Run()
	if ctx.Err() != nil {
		return nil // a signal to stop is no error
	}
	return err
}

// Poll calls read once per interval until ctx ends, and passes each result to take, which first is the first
// time: rates need two readings. With once, it ends after the second reading.
func Poll[S any](ctx context.Context, interval time.Duration, once bool, read func() (S, error), take func(now S, first bool) error) error {
	first := true
	for next := time.Now(); ; next = next.Add(max(interval, time.Since(next))) {
		if !sleep.Until(ctx, next) {
			return nil
		}
		now, err := read()
		if err != nil {
			return err
		}
		if err := take(now, first); err != nil || once && !first {
			return err
		}
		first = false
	}
}

// StatusLine is a line on a terminal, which each update overwrites. The zero value prints nothing.
type StatusLine struct {
	w     io.Writer
	shown int
}

// NewStatusLine returns a status line on w.
func NewStatusLine(w io.Writer) *StatusLine { return &StatusLine{w: w} }

// Show replaces the line.
func (l *StatusLine) Show(line string) {
	if l.w == nil {
		return
	}
	l.Clear()
	l.shown = len(line)
	fmt.Fprint(l.w, line)
}

// Clear removes the line.
func (l *StatusLine) Clear() {
	if l.w != nil && l.shown > 0 {
		fmt.Fprint(l.w, "\r"+strings.Repeat(" ", l.shown)+"\r")
		l.shown = 0
	}
}
