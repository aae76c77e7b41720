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
	"headgate.dev/headgate/internal/sleep"
)

// changes announces changes to the streams that watch responses: of the store, and of what the agents that are
// connected to this controller report.
type changes struct {
	mu sync.Mutex
	// watchers are signalled at each change of the store; those of a host also when its agent reports. Those of
	// allHosts are signalled when any agent does.
	watchers map[watcher]struct{}
	ofHosts  map[string]map[watcher]struct{}
}

// allHosts is the key of the watchers of all hosts: no host has this name.
const allHosts = ""

// watcher is signalled at changes. It holds one signal.
type watcher chan struct{}

// wake signals a channel that holds one signal, unless a signal is pending already.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// watch returns a watcher that is signalled until ctx is done.
func (c *changes) watch(ctx context.Context, scope server.AgentScope, host string) watcher {
	w := make(watcher, 1)
	if scope == server.AllAgents {
		host = allHosts
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watchers == nil {
		c.watchers, c.ofHosts = map[watcher]struct{}{}, map[string]map[watcher]struct{}{}
	}
	c.watchers[w] = struct{}{}
	if scope != server.NoAgents {
		if c.ofHosts[host] == nil {
			c.ofHosts[host] = map[watcher]struct{}{}
		}
		c.ofHosts[host][w] = struct{}{}
	}
	context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.watchers, w)
		if delete(c.ofHosts[host], w); len(c.ofHosts[host]) == 0 {
			delete(c.ofHosts, host)
		}
	})
	return w
}

// stored announces a change of the store.
func (c *changes) stored() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.watchers {
		wake(w)
	}
}

// reported announces that the agent of a host reported something, connected or disconnected. It is called for each
// report, of each agent ten a second at most.
func (c *changes) reported(host string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range []string{host, allHosts} {
		for w := range c.ofHosts[key] {
			wake(w)
		}
	}
}

// liveChanges returns for each path the channel of the changes that its response may depend on, until r is done
// (server.Server.Changes). What agents report to the other controllers comes by one live stream of each.
func (f *forwarder) liveChanges(r *http.Request, paths []string) []<-chan struct{} {
	out := make([]<-chan struct{}, len(paths))
	remote := map[string]watcher{}
	for n, path := range paths {
		q, err := http.NewRequest(http.MethodGet, path, http.NoBody)
		if err != nil {
			continue // the caller has checked the paths
		}
		o := f.api.Operation(q)
		if o == nil || o.Polled {
			continue
		}
		w := f.hub.changes.watch(r.Context(), o.Agents, hostOf(q))
		out[n] = w
		if o.Agents != server.NoAgents && !server.Forwarded(r) {
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
func (f *forwarder) followPeer(r *http.Request, at string, watchers map[string]watcher) {
	for pause := minPeerPause; ; pause = min(2*pause, maxPeerPause) {
		began := time.Now()
		if err := f.readPeer(r, at, watchers); err != nil && r.Context().Err() == nil {
			slog.Debug("live stream of another controller ended", "controller", at, "error", err)
		}
		if time.Since(began) > maxPeerPause {
			pause = minPeerPause
		}
		if !sleep.Until(r.Context(), time.Now().Add(pause)) {
			return
		}
	}
}

// readPeer reads one live stream of another controller.
func (f *forwarder) readPeer(r *http.Request, at string, watchers map[string]watcher) error {
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
			wake(watchers[event.Path])
		}
	}
	return lines.Err()
}

// maxPeerEvent is above the size in bytes of any event: the rates of a host with 16,000 groups.
const maxPeerEvent = 32 << 20
