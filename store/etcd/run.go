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

// Values chosen for Headgate.
const (
	// stopTimeout is how long the child may take to stop before it is killed.
	stopTimeout = 10 * time.Second
	// minBackoff and maxBackoff bound the back-off between restarts: a full disk stays full for a while.
	minBackoff, maxBackoff = 500 * time.Millisecond, 5 * time.Second
)

// Run keeps a child process running until ctx ends. command is run with the path of the member's
// configuration file as an additional argument, and must call RunChild. The child's output goes to the log.
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
	for pause := minBackoff; ; pause = min(2*pause, maxBackoff) {
		began := time.Now()
		err := runOnce(ctx, append(command[1:len(command):len(command)], file), command[0])
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(began) > time.Minute {
			pause = minBackoff
		}
		slog.Error("etcd process ended, restarting it", "error", err, "retry_after", pause)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// runOnce runs the child until it ends or ctx ends.
func runOnce(ctx context.Context, args []string, program string) error {
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
	case <-time.After(stopTimeout):
		c.Process.Kill()
		return <-ended
	}
}

// tail logs the lines of the child's output and keeps the last part of it for errors.
type tail struct {
	mu   sync.Mutex
	last []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for line := range bytes.Lines(p) {
		slog.Debug("etcd output", "line", string(bytes.TrimSpace(line)))
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
