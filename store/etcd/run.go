package etcd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// Ours.
const (
	// gentle is how long a child may take to end after it was asked to.
	gentle = 10 * time.Second
	// firstPause and lastPause are before it is started again: a full disk is not freed soon.
	firstPause, lastPause = 500 * time.Millisecond, 5 * time.Second
)

// Run keeps a child running until ctx ends: command, with the name of the file behind it that says
// which member it is, is to call Child. What the child says goes to the log.
func (m Member) Run(ctx context.Context, command []string) error {
	if err := m.Prepare(); err != nil {
		return err
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	file := filepath.Join(m.Dir, memberFile)
	if err := write(file, text); err != nil {
		return err
	}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		began := time.Now()
		err := once(ctx, append(command[1:len(command):len(command)], file), command[0])
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(began) > time.Minute {
			pause = firstPause
		}
		slog.Error("the store has ended, and is started again", "error", err, "after", pause)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// once runs the child until it ends, or ctx does.
func once(ctx context.Context, args []string, program string) error {
	c := exec.Command(program, args...)
	in, err := c.StdinPipe()
	if err != nil {
		return err
	}
	said := &tail{}
	c.Stderr = said
	if err := c.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	select {
	case err := <-ended:
		return fmt.Errorf("%w: %s", err, said)
	case <-ctx.Done():
	}
	in.Close()
	select {
	case err := <-ended:
		return err
	case <-time.After(gentle):
		c.Process.Kill()
		return <-ended
	}
}

// tail is the last that somebody said, and its lines in the log.
type tail struct {
	mu   sync.Mutex
	last []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for line := range bytes.Lines(p) {
		slog.Debug("store", "says", string(bytes.TrimSpace(line)))
	}
	const keep = 2000
	t.last = append(t.last, p...)
	t.last = t.last[max(len(t.last)-keep, 0):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.last))
}
