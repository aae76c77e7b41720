package reservations

import (
	"bufio"
	"context"
	"encoding/json"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"headgate.dev/headgate/lab/traffic"
)

// watcher runs "headgate reserve top -o json", and keeps the limit of each reservation over time.
type watcher struct {
	cmd  *exec.Cmd
	done chan struct{}

	mu     sync.Mutex
	limits map[string][]limited
}

// limited is a limit that was read.
type limited struct {
	at    time.Time
	limit float64 // bit/s
}

// watch starts to read the limits, each 100 ms.
func (n *network) watch(ctx context.Context) (*watcher, error) {
	c := n.place.Controllers[0]
	cmd, err := c.Command(ctx, "reserve", "top", "--interval", "100ms", "-o", "json")
	if err != nil {
		return nil, err
	}
	w := &watcher{cmd: cmd, done: make(chan struct{}), limits: map[string][]limited{}}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Do(w.cmd.Start); err != nil {
		return nil, err
	}
	go func() {
		defer close(w.done)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<24)
		for lines.Scan() {
			var r reading
			if json.Unmarshal(lines.Bytes(), &r) != nil {
				continue
			}
			w.mu.Lock()
			for _, u := range r.Items {
				if u.LimitBps != nil {
					w.limits[u.Name] = append(w.limits[u.Name], limited{r.Time, float64(*u.LimitBps)})
				}
			}
			w.mu.Unlock()
		}
		_ = w.cmd.Wait()
	}()
	return w, nil
}

// stop ends it, and returns the limits by reservation.
func (w *watcher) stop() map[string][]limited {
	_ = w.cmd.Process.Signal(syscall.SIGINT)
	<-w.done
	return w.limits
}

// highest returns the highest limit in a time, false if there was none.
func highest(all []limited, from, to time.Time) (most float64, ok bool) {
	var before *limited
	for i, l := range all {
		switch {
		case !l.at.After(from):
			before = &all[i]
		case l.at.Before(to):
			most, ok = max(most, l.limit), true
		}
	}
	if before != nil {
		most, ok = max(most, before.limit), true
	}
	return most, ok
}

// turns returns the limits without repetitions, as they were in force one after the other.
func turns(all []limited) (out []limited) {
	for _, l := range all {
		if len(out) == 0 || out[len(out)-1].limit != l.limit {
			out = append(out, l)
		}
	}
	return out
}

// sendWatched sends flows, and returns what arrived, the limits meanwhile by reservation, and when the flows began.
func (n *network) sendWatched(ctx context.Context, flows []traffic.Flow, length time.Duration) (result *traffic.Result, limits map[string][]limited, start time.Time, err error) {
	w, err := n.watch(ctx)
	if err != nil {
		return nil, nil, start, err
	}
	began, origin := time.Now(), traffic.MonotonicNow()
	session, err := traffic.Start(ctx, n.Host, flows, traffic.Options{Duration: length, Interval: time.Second})
	if err != nil {
		w.stop()
		return nil, nil, start, err
	}
	result = session.Wait()
	limits = w.stop()
	return result, limits, began.Add(time.Duration(result.StartMonotonicNs - origin)), ctx.Err()
}
