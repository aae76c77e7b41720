package controller

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"headgate.dev/headgate/api/server"
)

// changes announces changes to the streams that watch responses: of the store, and of what the agents that are
// connected to this controller report.
type changes struct {
	mu       sync.Mutex
	watchers map[*watcher]struct{}
}

// watcher waits for changes.
type watcher struct {
	scope server.AgentScope // whose reports it needs
	host  string            // the host of scope server.HostAgent
	wake  chan struct{}
}

func (w *watcher) signal() {
	select {
	case w.wake <- struct{}{}:
	default: // a signal is pending already
	}
}

// watch returns a watcher that is signalled until ctx is done.
func (c *changes) watch(ctx context.Context, scope server.AgentScope, host string) *watcher {
	w := &watcher{scope, host, make(chan struct{}, 1)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watchers == nil {
		c.watchers = map[*watcher]struct{}{}
	}
	c.watchers[w] = struct{}{}
	context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.watchers, w)
	})
	return w
}

// stored announces a change of the store.
func (c *changes) stored() { c.signal(func(*watcher) bool { return true }) }

// reported announces that the agent of a host reported something, connected or disconnected.
func (c *changes) reported(host string) {
	c.signal(func(w *watcher) bool {
		return w.scope == server.AllAgents || w.scope == server.HostAgent && w.host == host
	})
}

func (c *changes) signal(concerned func(*watcher) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.watchers {
		if concerned(w) {
			w.signal()
		}
	}
}

// liveChanges returns for each path the channel of the changes that its response may depend on, until r is done
// (server.Server.Changes). What agents report to the other controllers comes by one live stream of each.
func (f *forwarder) liveChanges(r *http.Request, paths []string) []<-chan struct{} {
	out := make([]<-chan struct{}, len(paths))
	remote := map[string]*watcher{}
	for n, path := range paths {
		scope, host := server.NoAgents, ""
		if q, err := http.NewRequest(http.MethodGet, path, http.NoBody); err == nil {
			if o := f.api.Operation(q); o != nil && o.Polled {
				continue
			} else if o != nil {
				scope, host = o.Agents, hostOf(q)
			}
		}
		w := f.hub.changes.watch(r.Context(), scope, host)
		out[n] = w.wake
		if scope != server.NoAgents && !isForwarded(r) {
			remote[path] = w
		}
	}
	if len(remote) > 0 {
		for _, at := range f.peers {
			go f.followPeer(r, at, remote)
		}
	}
	return out
}

// minPeerPause and maxPeerPause bound the delay before another attempt to open a live stream of another controller,
// chosen for Headgate.
const minPeerPause, maxPeerPause = 2 * time.Second, 30 * time.Second

// followPeer signals the watchers of paths whose responses of another controller change, until r is done.
func (f *forwarder) followPeer(r *http.Request, at string, watchers map[string]*watcher) {
	pause := minPeerPause
	for ctx := r.Context(); ctx.Err() == nil; pause = min(2*pause, maxPeerPause) {
		began := time.Now()
		if err := f.readPeer(r, at, watchers); err != nil && ctx.Err() == nil {
			slog.Debug("live stream of another controller ended", "controller", at, "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		if time.Since(began) > 2*maxPeerPause {
			pause = minPeerPause
		}
	}
}

// readPeer reads one live stream of another controller.
func (f *forwarder) readPeer(r *http.Request, at string, watchers map[string]*watcher) error {
	see := url.Values{}
	for path := range watchers {
		see.Add("see", path)
	}
	q, err := f.request(r.Context(), r, http.MethodGet, "https://"+at+"/v1/live?"+see.Encode(), nil)
	if err != nil {
		return err
	}
	answer, err := f.client.Do(q)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the controller answers %s", answer.Status)
	}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, maxPeerEvent)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		var event struct {
			Path string `json:"path"`
		}
		if ok && json.Unmarshal([]byte(data), &event) == nil && watchers[event.Path] != nil {
			watchers[event.Path].signal()
		}
	}
	return lines.Err()
}

// maxPeerEvent is above the size in bytes of any event: the rates of a host with 16,000 groups.
const maxPeerEvent = 32 << 20
