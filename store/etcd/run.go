package etcd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
	// A child that ends failedStarts times in a row, each within shortRun, before it has run for longer, will not start: its data is damaged, or its port is taken.
	failedStarts = 4
	shortRun     = 20 * time.Second
)

// ErrNoStart means that the child process cannot start.
var ErrNoStart = errors.New("the store cannot start")

// Run keeps a child process running until ctx ends. command is run with the path of the member's
// configuration file as an additional argument, and must call RunChild. The child's output goes to the log. The error is
// ErrNoStart if it cannot start at all.
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
	ran, failed := false, 0
	for pause := minBackoff; ; pause = min(2*pause, maxBackoff) {
		began := time.Now()
		err := runOnce(ctx, append(command[1:len(command):len(command)], file), command[0])
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(began) > time.Minute {
			pause = minBackoff
		}
		ran = ran || time.Since(began) > shortRun
		if failed++; failed == failedStarts && !ran {
			return fmt.Errorf("%w: %w", ErrNoStart, err)
		}
		log := slog.Error
		if !ran { // the returned error says why it never ran
			log = slog.Debug
		}
		log("etcd process ended, restarting it", "error", err, "retry_after", pause)
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
		if reason := said.reason(); reason != "" {
			return errors.New(reason)
		}
		return err
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

// tail logs the lines of the child's output and keeps the reason for its end.
type tail struct {
	mu   sync.Mutex
	part []byte // an incomplete line
	why  string
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.part = append(t.part, p...)
	for {
		line, rest, whole := bytes.Cut(t.part, []byte("\n"))
		if !whole {
			break
		}
		slog.Debug("etcd output", "line", string(line))
		if why := reasonOf(line); why != "" {
			t.why = why
		}
		t.part = rest
	}
	t.part = t.part[max(len(t.part)-maxLine, 0):]
	return len(p), nil
}

const maxLine = 1 << 16

// reason returns the last reason that was printed, "" if there was none.
func (t *tail) reason() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if why := reasonOf(t.part); why != "" {
		return why
	}
	return t.why
}

// reasonOf returns what a line says of the end of the program: a message of etcd's logger of a level that ends it, the text of a panic, or the error of RunChild.
func reasonOf(line []byte) string {
	if text, is := bytes.CutPrefix(line, []byte("panic: ")); is {
		return string(text)
	}
	if text, is := bytes.CutPrefix(line, []byte("headgate: ")); is {
		return string(text)
	}
	var logged struct {
		Level string `json:"level"`
		Text  string `json:"msg"`
		Error string `json:"error"`
	}
	if json.Unmarshal(line, &logged) != nil || logged.Level != "fatal" && logged.Level != "panic" {
		return ""
	}
	if logged.Error == "" {
		return logged.Text
	}
	return logged.Text + ": " + logged.Error
}
