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

// cache is what the store has for hosts, as of a revision.
type cache struct {
	store   *store.Store
	changed func(host string) // after each change that is a host's
	probed  func()            // after each change of what is known of measurements

	mu       sync.Mutex
	revision int64
	epoch    uint64 // that the revisions are of
	hosts    map[string]*hostIntent
	probing  probing
	// asOf is the last time of which it is known that all that was written until then is in it.
	asOf time.Time
}

// soundFor is how long what is here counts as what the store has, after it last said so: agents stay
// with nobody who has no better to tell than what was. Ours.
const soundFor = 3 * time.Second

// sound tells whether what is here is what the store has.
func (c *cache) sound() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.asOf) < soundFor
}

// hostIntent is what one host is to have.
type hostIntent struct {
	host        *store.Host // nil if there is none of that name
	interfaces  map[string]document
	collectives map[string]document
}

// document is one as an agent is sent it.
type document struct {
	revision int64
	text     []byte
	limits   map[string]unit.Rate // of an interface, by direction
}

// follow keeps the cache as the store is until ctx ends.
func (c *cache) follow(ctx context.Context) {
	for ctx.Err() == nil {
		err := c.load(ctx)
		if err == nil {
			err = c.watch(ctx)
		}
		if ctx.Err() == nil {
			slog.Warn("the store cannot be followed, and is read again", "error", err)
			time.Sleep(200 * time.Millisecond)
		}
	}
}

// kinds are what is followed: what agents are sent, and what they are to measure.
var kinds = []string{store.Hosts, store.Interfaces, store.Collectives, store.Probing}

// load reads everything, at one revision.
func (c *cache) load(ctx context.Context) error {
	began := time.Now()
	fresh := &cache{hosts: map[string]*hostIntent{}, probing: newProbing()}
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
				slog.Error("a document is left out", "error", err)
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
	c.hosts, c.probing, c.epoch, c.revision, c.asOf = fresh.hosts, fresh.probing, fresh.epoch, at, began
	c.mu.Unlock()
	c.probed()
	for host := range fresh.hosts {
		c.changed(host)
	}
	for host := range old {
		if fresh.hosts[host] == nil {
			c.changed(host)
		}
	}
	return nil
}

func (c *cache) watch(ctx context.Context) error {
	c.mu.Lock()
	from := c.revision
	c.mu.Unlock()
	return c.store.Follow(ctx, from, func(revision int64, events []store.Event) error {
		touched, probed := map[string]bool{}, false
		c.mu.Lock()
		for _, e := range events {
			if err := c.put(e.Doc); err != nil {
				slog.Error("a document is left out", "error", err)
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
			c.probed()
		}
		for host := range touched {
			c.changed(host)
		}
		return nil
	}, func(revision int64, asOf time.Time) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.revision, c.asOf = max(c.revision, revision), asOf
	})
}

// put takes a document in, or away if it has no value.
func (c *cache) put(d store.Doc) error {
	kind, name := store.Name(d.Key)
	switch {
	case d.Key == store.EpochKey:
		return d.Into(&c.epoch)
	case kind == store.Hosts && len(name) == 1:
		h := c.of(name[0])
		h.host = nil
		if d.Value == nil {
			return nil
		}
		h.host = &store.Host{}
		return d.Into(h.host)
	case kind == store.Probing:
		return c.probing.put(name, d)
	case kind == store.Interfaces && len(name) == 2:
		return set(c.of(name[0]).interfaces, name[1], d, func() (out document, err error) {
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
			i.Owners, i.Handed = nil, nil // of no concern to a host
			out.text, err = json.Marshal(i)
			return out, err
		})
	case kind == store.Collectives && len(name) == 2:
		return set(c.of(name[0]).collectives, name[1], d, func() (document, error) {
			var v store.Collective
			err := d.Into(&v)
			return document{text: []byte(v.Document)}, err
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

// limit is what a direction of a host's device is limited to, as its agent finds it. 0 is none.
func (c *cache) limit(host, dev string, names group.Names, direction string) unit.Rate {
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

func (c *cache) of(host string) *hostIntent {
	h := c.hosts[host]
	if h == nil {
		h = &hostIntent{interfaces: map[string]document{}, collectives: map[string]document{}}
		c.hosts[host] = h
	}
	return h
}
