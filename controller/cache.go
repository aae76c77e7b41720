package controller

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/api/server"
	"headgate.dev/headgate/controller/reservations"
	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/unit"
)

// cache is a copy of the store's documents for hosts, at a revision.
type cache struct {
	store        *store.Store
	onHostChange func(host string) // called after each change of a host's documents
	onChange     map[string]func() // called after each change of documents of the network, by kind
	onRevision   func()            // called after each change of the store

	mu       sync.Mutex
	revision int64
	contents
	// currentAt is the latest time for which the cache is known to contain all earlier writes.
	currentAt time.Time
}

// contents are the documents of the cache.
type contents struct {
	epoch uint64 // epoch of the revisions
	// restored is the revision of a restore that no operator has confirmed, 0 for none.
	restored int64
	hosts    map[string]*desiredHost
	probing  probing
	network  *fabric.Config // nil without a configuration
	weak     []store.WeakLink
	// tenantBytes is the size of what each tenant has in all interfaces.
	tenantBytes map[string]int
}

func newContents() contents {
	return contents{hosts: map[string]*desiredHost{}, probing: newProbing(), tenantBytes: map[string]int{}}
}

// cachedKind is a kind of documents in the cache. put stores the document with a name, or removes it if its value
// is nil. Documents of a host begin their names with it, and a change wakes the stream of its agent; all others
// are of the network, and a change calls cache.onChange.
type cachedKind struct {
	ofHost bool
	parts  int // of the name; 0 is any number
	put    func(c *contents, name []string, d store.Doc) error
}

// kinds are the kinds of documents in the cache.
var kinds = map[string]cachedKind{
	store.Hosts:       {true, 1, (*contents).putHost},
	store.Interfaces:  {true, 2, (*contents).putInterface},
	store.Collectives: {true, 2, (*contents).putCollective},
	store.Probing:     {false, 0, func(c *contents, name []string, d store.Doc) error { return c.probing.put(name, d) }},
	store.Network:     {false, 1, (*contents).putNetwork},
}

// maxStaleness is how long the cache counts as current after the store last confirmed it. An older cache
// makes agents move to another controller. The value is chosen for Headgate.
const maxStaleness = 3 * time.Second

// isCurrent reports whether the cache is current.
func (c *cache) isCurrent() bool { return time.Since(c.confirmed()) < maxStaleness }

// confirmed returns the latest time for which the cache is known to contain all earlier writes.
func (c *cache) confirmed() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.currentAt
}

// desiredHost is the desired state of one host.
type desiredHost struct {
	host        *store.Host // nil if the host does not exist
	since       int64       // revision of host
	interfaces  map[string]document
	collectives map[string]document
}

// document is a document as sent to an agent.
type document struct {
	revision int64
	body     []byte
	size     int                  // in the store
	tenants  map[string]int       // size of what tenants have in an interface
	limits   map[string]unit.Rate // limits of an interface, by direction
	totals   map[string]unit.Rate // totals of the guarantees of its groups
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

// load reads all documents at one revision.
func (c *cache) load(ctx context.Context) error {
	began := time.Now()
	fresh := newContents()
	var at int64
	for kind := range kinds {
		docs, revision, err := c.store.All(ctx, store.Prefix(kind), at)
		if err != nil {
			return err
		}
		if at == 0 {
			at = revision
		}
		for _, d := range docs {
			fresh.put(d)
		}
	}
	epoch, ok, err := c.store.Get(ctx, store.EpochKey, at)
	if err == nil && ok {
		err = epoch.Into(&fresh.epoch)
	}
	if err != nil {
		return err
	}
	restored, ok, err := c.store.Get(ctx, store.RestoreKey, at)
	if err != nil {
		return err
	}
	if ok {
		fresh.put(restored)
	}
	c.mu.Lock()
	old := c.hosts
	c.contents, c.revision, c.currentAt = fresh, at, began
	c.mu.Unlock()
	c.onRevision()
	for _, changed := range c.onChange {
		changed()
	}
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
		hosts, network := map[string]bool{}, map[string]bool{}
		c.mu.Lock()
		for _, e := range events {
			c.put(e.Doc)
			if e.Key == store.EpochKey { // agents that were ahead may not be now
				for host := range c.hosts {
					hosts[host] = true
				}
			}
			name, parts := store.Name(e.Key)
			switch k, cached := kinds[name]; {
			case cached && k.ofHost:
				hosts[parts[0]] = true
			case cached:
				network[name] = true
			}
		}
		c.revision = revision
		c.mu.Unlock()
		c.onRevision()
		for kind := range network {
			if changed := c.onChange[kind]; changed != nil {
				changed()
			}
		}
		for host := range hosts {
			c.onHostChange(host)
		}
		return nil
	}, func(revision int64, asOf time.Time) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.revision, c.currentAt = max(c.revision, revision), asOf
	})
}

// put stores a document, or removes it if its value is nil. A document that cannot be decoded is skipped.
func (c *contents) put(d store.Doc) {
	kind, name := store.Name(d.Key)
	var err error
	switch k, cached := kinds[kind]; {
	case d.Key == store.EpochKey:
		err = d.Into(&c.epoch)
	case d.Key == store.RestoreKey && d.Value == nil:
		c.restored = 0
	case d.Key == store.RestoreKey:
		c.restored = d.Revision
	case cached && (k.parts == 0 || k.parts == len(name)):
		err = k.put(c, name, d)
	}
	if err != nil {
		slog.Error("cannot decode document, skipping it", "error", err)
	}
}

func (c *contents) putHost(name []string, d store.Doc) error {
	h := c.host(name[0])
	h.host, h.since = nil, d.Revision
	if d.Value == nil {
		return nil
	}
	h.host = &store.Host{}
	return d.Into(h.host)
}

func (c *contents) putInterface(name []string, d store.Doc) error {
	all := c.host(name[0]).interfaces
	for tenant, bytes := range all[name[1]].tenants {
		c.tenantBytes[tenant] -= bytes
	}
	defer func() {
		for tenant, bytes := range all[name[1]].tenants {
			c.tenantBytes[tenant] += bytes
		}
	}()
	return set(all, name[1], d, func() (out document, err error) {
		var i store.Interface
		if err := d.Into(&i); err != nil {
			return out, err
		}
		out.tenants = i.TenantBytes()
		out.limits, out.totals = map[string]unit.Rate{}, map[string]unit.Rate{}
		for _, direction := range []string{"out", "in"} {
			if d := i.Direction(direction); d != nil {
				out.limits[direction], out.totals[direction] = d.Limit, d.Guaranteed()
			}
		}
		sent := agents.InterfaceDocument{Interface: i.Interface, Connections: map[string]agents.Assignment{}}
		for name, c := range i.Connections {
			sent.Connections[name] = agents.Assignment{Group: c.Group}
		}
		out.body, err = json.Marshal(sent)
		return out, err
	})
}

func (c *contents) putCollective(name []string, d store.Doc) error {
	return set(c.host(name[0]).collectives, name[1], d, func() (document, error) {
		var v store.Collective
		err := d.Into(&v)
		return document{body: []byte(v.Document)}, err
	})
}

func set(in map[string]document, name string, d store.Doc, read func() (document, error)) error {
	if d.Value == nil {
		delete(in, name)
		return nil
	}
	fresh, err := read()
	if err == nil {
		fresh.revision, fresh.size = d.Revision, len(d.Value)
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

// restoredAt returns the revision of a restore that no operator has confirmed, 0 for none. It reads the store while the cache was never read.
func (c *cache) restoredAt(ctx context.Context) (int64, error) {
	c.mu.Lock()
	revision, known := c.restored, !c.currentAt.IsZero()
	c.mu.Unlock()
	if known {
		return revision, nil
	}
	d, _, err := c.store.Get(ctx, store.RestoreKey, 0)
	return d.Revision, err
}

// storedBeside returns what a host has beside the document of a device, and what a tenant has beside its groups on that device.
func (c *cache) storedBeside(host, dev, tenant string) (out server.Stored) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out.Tenant = c.tenantBytes[tenant]
	h := c.hosts[host]
	if h == nil {
		return out
	}
	out.Device = h.interfaces[dev].tenants[tenant]
	out.Tenant -= out.Device
	for _, documents := range []map[string]document{h.interfaces, h.collectives} {
		for _, d := range documents {
			out.Host += d.size
		}
	}
	out.Host -= h.interfaces[dev].size
	return out
}

// guarantees returns the document of a host's device, and the limits and guarantees that it has. A device without a document has its own name.
func (c *cache) guarantees(host, dev string) reservations.Interface {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := reservations.Interface{Host: host, Dev: dev}
	h := c.hosts[host]
	if h == nil {
		return out
	}
	documents := slices.Sorted(maps.Keys(h.interfaces))
	if n := (group.AltNames{}).Of(dev, documents); n >= 0 {
		d := h.interfaces[documents[n]]
		out.Dev = documents[n]
		out.Out = reservations.Guarantees{Limit: d.limits["out"], Total: d.totals["out"]}
		out.In = reservations.Guarantees{Limit: d.limits["in"], Total: d.totals["in"]}
	}
	return out
}

func (c *contents) host(host string) *desiredHost {
	h := c.hosts[host]
	if h == nil {
		h = &desiredHost{interfaces: map[string]document{}, collectives: map[string]document{}}
		c.hosts[host] = h
	}
	return h
}
