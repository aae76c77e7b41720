package controller

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"headgate/group"
	"headgate/store"
	"headgate/unit"
)

// cache is a copy of the store's documents for hosts, at a revision.
type cache struct {
	store           *store.Store
	onHostChange    func(host string) // called after each change of a host's documents
	onProbingChange func()            // called after each change of scheduled measurements

	mu       sync.Mutex
	revision int64
	epoch    uint64 // epoch of the revisions
	hosts    map[string]*desiredHost
	probing  probing
	// currentAt is the latest time for which the cache is known to contain all earlier writes.
	currentAt time.Time
}

// maxStaleness is how long the cache counts as current after the store last confirmed it. An older cache
// makes agents move to another controller. The value is chosen for Headgate.
const maxStaleness = 3 * time.Second

// current reports whether the cache is current.
func (c *cache) current() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.currentAt) < maxStaleness
}

// desiredHost is the desired state of one host.
type desiredHost struct {
	host        *store.Host // nil if the host does not exist
	interfaces  map[string]document
	collectives map[string]document
}

// document is a document as sent to an agent.
type document struct {
	revision int64
	body     []byte
	limits   map[string]unit.Rate // limits of an interface, by direction
}

// follow keeps the cache current until ctx ends.
func (c *cache) follow(ctx context.Context) {
	for ctx.Err() == nil {
		err := c.load(ctx)
		if err == nil {
			err = c.watch(ctx)
		}
		if ctx.Err() == nil {
			slog.Warn("cannot watch the store, reading it again", "error", err)
			time.Sleep(200 * time.Millisecond)
		}
	}
}

// kinds are the kinds of documents in the cache: agents' desired state and scheduled measurements.
var kinds = []string{store.Hosts, store.Interfaces, store.Collectives, store.Probing}

// load reads all documents at one revision.
func (c *cache) load(ctx context.Context) error {
	began := time.Now()
	fresh := &cache{hosts: map[string]*desiredHost{}, probing: newProbing()}
	var at int64
	for _, kind := range kinds {
		docs, revision, err := c.store.All(ctx, store.Prefix(kind), at)
		if err != nil {
			return err
		}
		if at == 0 {
			at = revision
		}
		for _, d := range docs {
			if err := fresh.put(d); err != nil {
				slog.Error("cannot decode document, skipping it", "error", err)
			}
		}
	}
	epoch, ok, err := c.store.Get(ctx, store.EpochKey, at)
	if err == nil && ok {
		err = fresh.put(epoch)
	}
	if err != nil {
		return err
	}
	c.mu.Lock()
	old := c.hosts
	c.hosts, c.probing, c.epoch, c.revision, c.currentAt = fresh.hosts, fresh.probing, fresh.epoch, at, began
	c.mu.Unlock()
	c.onProbingChange()
	for host := range fresh.hosts {
		c.onHostChange(host)
	}
	for host := range old {
		if fresh.hosts[host] == nil {
			c.onHostChange(host)
		}
	}
	return nil
}

func (c *cache) watch(ctx context.Context) error {
	c.mu.Lock()
	from := c.revision
	c.mu.Unlock()
	return c.store.WatchComplete(ctx, from, func(revision int64, events []store.Event) error {
		touched, probed := map[string]bool{}, false
		c.mu.Lock()
		for _, e := range events {
			if err := c.put(e.Doc); err != nil {
				slog.Error("cannot decode document, skipping it", "error", err)
			}
			kind, name := store.Name(e.Key)
			probed = probed || kind == store.Probing
			if kind == store.Hosts || kind == store.Interfaces || kind == store.Collectives {
				touched[name[0]] = true
			}
		}
		c.revision = revision
		c.mu.Unlock()
		if probed {
			c.onProbingChange()
		}
		for host := range touched {
			c.onHostChange(host)
		}
		return nil
	}, func(revision int64, asOf time.Time) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.revision, c.currentAt = max(c.revision, revision), asOf
	})
}

// put stores a document, or removes it if its value is nil.
func (c *cache) put(d store.Doc) error {
	kind, name := store.Name(d.Key)
	switch {
	case d.Key == store.EpochKey:
		return d.Into(&c.epoch)
	case kind == store.Hosts && len(name) == 1:
		h := c.host(name[0])
		h.host = nil
		if d.Value == nil {
			return nil
		}
		h.host = &store.Host{}
		return d.Into(h.host)
	case kind == store.Probing:
		return c.probing.put(name, d)
	case kind == store.Interfaces && len(name) == 2:
		return set(c.host(name[0]).interfaces, name[1], d, func() (out document, err error) {
			var i store.Interface
			if err := d.Into(&i); err != nil {
				return out, err
			}
			out.limits = map[string]unit.Rate{}
			for _, direction := range []string{"out", "in"} {
				if d := i.Direction(direction); d != nil {
					out.limits[direction] = d.Limit
				}
			}
			i.Owners, i.OwnerChanged = nil, nil // agents do not need ownership
			out.body, err = json.Marshal(i)
			return out, err
		})
	case kind == store.Collectives && len(name) == 2:
		return set(c.host(name[0]).collectives, name[1], d, func() (document, error) {
			var v store.Collective
			err := d.Into(&v)
			return document{body: []byte(v.Document)}, err
		})
	}
	return nil
}

func set(in map[string]document, name string, d store.Doc, read func() (document, error)) error {
	if d.Value == nil {
		delete(in, name)
		return nil
	}
	fresh, err := read()
	if err == nil {
		fresh.revision = d.Revision
		in[name] = fresh
	}
	return err
}

// limit returns the limit of a direction of a host's device, resolved as the agent resolves device
// names and patterns. 0 means no limit.
func (c *cache) limit(host, dev string, names group.AltNames, direction string) unit.Rate {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.hosts[host]
	if h == nil {
		return 0
	}
	documents := slices.Sorted(maps.Keys(h.interfaces))
	if n := names.Of(dev, documents); n >= 0 {
		return h.interfaces[documents[n]].limits[direction]
	}
	return 0
}

func (c *cache) host(host string) *desiredHost {
	h := c.hosts[host]
	if h == nil {
		h = &desiredHost{interfaces: map[string]document{}, collectives: map[string]document{}}
		c.hosts[host] = h
	}
	return h
}
