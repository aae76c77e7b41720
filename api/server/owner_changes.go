package server

import (
	"errors"
	"maps"
	"time"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/store"
)

// checkReserved refuses guarantees that leave less than reservations have, unless they left even less before.
func (c *changeRequest) checkReserved(host string, before, next *store.Interface) error {
	var reserved store.Reserved
	if _, there, err := c.tx.Get(store.ReservedKey(host, next.Dev), &reserved); err != nil || !there {
		return err
	}
	for _, direction := range directions {
		was, _ := before.Excess(direction, reserved, time.Now())
		if more, why := next.Excess(direction, reserved, time.Now()); more > was {
			return invalidField(direction+".groups", errors.New(why))
		}
	}
	return nil
}

// saveInterface writes an interface and records which groups changed their owner: the new owner may not read the
// usage records from before that.
func (c *changeRequest) saveInterface(host string, next *store.Interface) error {
	var before store.Interface
	key, former := interfaceKey(host, next.Dev), store.Key(store.Removed, host, next.Dev)
	if c.readKey == key {
		before = *c.read
	} else if _, there, err := c.tx.Get(key, &before); err != nil {
		return err
	} else if !there {
		if _, there, err = c.tx.Get(former, &before); err != nil {
			return err
		} else if there {
			c.tx.Delete(former)
		}
	}
	if err := c.checkReserved(host, &before, next); err != nil {
		return err
	}
	// A tenant's change cannot move groups between owners, unless one of the tenant's groups contained a
	// group of another tenant.
	if next.OwnerChanged = before.OwnerChanged; c.by.Tenant == "" || !maps.Equal(before.Owners, next.Owners) {
		recordOwnerChanges(&before, next, time.Now().UTC())
	}
	return c.putInterfaceDocument(host, &before, next)
}

// deleteInterface deletes an interface and records that its groups have no owner any more.
func (c *changeRequest) deleteInterface(host string, before *store.Interface) error {
	var former store.Interface
	former.Dev = before.Dev
	recordOwnerChanges(before, &former, time.Now().UTC())
	c.tx.Delete(interfaceKey(host, before.Dev))
	return c.tx.Put(store.Key(store.Removed, host, before.Dev), former)
}

// recordOwnerChanges records in next.OwnerChanged the groups of before that have another owner in next or that
// next does not have.
func recordOwnerChanges(before, next *store.Interface, now time.Time) {
	next.OwnerChanged = map[string]time.Time{}
	for at, t := range before.OwnerChanged {
		if now.Sub(t) < usageKept {
			next.OwnerChanged[at] = t
		}
	}
	for _, direction := range directions {
		there := map[string]bool{}
		if d := next.Direction(direction); d != nil {
			walkGroups(d.Groups, "", func(path string, _ group.Group) bool { there[path] = true; return true })
		}
		d := before.Direction(direction)
		if d == nil {
			continue
		}
		walkGroups(d.Groups, "", func(path string, _ group.Group) bool {
			was, is := before.Owner(direction, path), next.Owner(direction, path)
			at := now
			if was == "" && there[path] {
				// The tenant needs the usage record of the whole minute, and the operator's part of that
				// minute is no secret.
				at = now.Truncate(time.Minute)
			}
			// A group that a tenant deletes from its own group can only belong to the same tenant later.
			if (was != is || was == "" && !there[path]) && at.After(next.OwnedSince(direction, path)) {
				next.OwnerChanged[direction+"/"+path] = at
			}
			return true
		})
	}
}
