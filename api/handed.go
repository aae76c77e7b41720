package api

import (
	"maps"
	"time"

	"headgate/group"
	"headgate/store"
)

// save writes an interface, and notes which groups went from one owner to another: the record of what
// they had before is not the next one's to read.
func (c *call) save(host string, next *store.Interface) error {
	var before store.Interface
	key, former := ledger(host, next.Dev), store.Key(store.Former, host, next.Dev)
	if _, there, err := c.tx.Get(key, &before); err != nil {
		return err
	} else if !there {
		if _, there, err = c.tx.Get(former, &before); err != nil {
			return err
		} else if there {
			c.tx.Delete(former)
		}
	}
	// A tenant neither takes groups away from others nor gives its own, but for what is another's in it.
	if next.Handed = before.Handed; c.by.Tenant == "" || !maps.Equal(before.Owners, next.Owners) {
		handOver(&before, next, time.Now().UTC())
	}
	return c.tx.Put(key, next)
}

// giveBack removes an interface, and notes that nobody has its groups any more.
func (c *call) giveBack(host string, before *store.Interface) error {
	var former store.Interface
	former.Dev = before.Dev
	handOver(before, &former, time.Now().UTC())
	c.tx.Delete(ledger(host, before.Dev))
	return c.tx.Put(store.Key(store.Former, host, before.Dev), former)
}

// handOver notes at next what it has of before in other hands, or has not any more.
func handOver(before, next *store.Interface, now time.Time) {
	next.Handed = map[string]time.Time{}
	for at, t := range before.Handed {
		if now.Sub(t) < usageKept {
			next.Handed[at] = t
		}
	}
	for _, direction := range directions {
		there := map[string]bool{}
		if d := next.Direction(direction); d != nil {
			each(d.Groups, "", func(path string, _ group.Group) bool { there[path] = true; return true })
		}
		d := before.Direction(direction)
		if d == nil {
			continue
		}
		each(d.Groups, "", func(path string, _ group.Group) bool {
			was, is := before.Owner(direction, path), next.Owner(direction, path)
			at := now
			if was == "" && there[path] {
				// The operator's part of the minute is no secret, and the tenant's is its proof.
				at = now.Truncate(time.Minute)
			}
			// What is removed by a tenant out of its own group can only be its own again.
			if (was != is || was == "" && !there[path]) && at.After(next.OwnedSince(direction, path)) {
				next.Handed[direction+"/"+path] = at
			}
			return true
		})
	}
}
