package api

import (
	"fmt"
	"net/http"
	"time"

	"headgate/group"
	"headgate/store"
)

// Ours: the most that one tenant has, so that it leaves something of what all share. A direction
// has 16,000 groups and 16,384 rules, and a classifier of it a million entries and 128 shapes; a
// program's user has as many connections.
const (
	mostConnections = 1024  // of a device
	mostGroups      = 1024  // of a direction, with those that it was given
	mostRules       = 2048  // of a direction, as they multiply
	mostEntries     = 65536 // of these (group.Selector)
	mostShapes      = 32
	mostTokens      = 100

	allEntries, allShapes = 1 << 20, 128 // beyond this nobody counts
)

// capConnections refuses a tenant another connection on a device beyond the most.
func capConnections(i *store.Interface, tenant string) error {
	n := 0
	for _, c := range i.Connections {
		if c.Tenant == tenant {
			n++
		}
	}
	if tenant == "" || n <= mostConnections {
		return nil
	}
	return wrong("connection", fmt.Errorf("the tenant %s has %d connections in groups of %s, which is the most: give one back to the rules first", tenant, mostConnections, i.Dev))
}

// part is what a tenant has of a direction.
type part struct{ groups, rules, entries, shapes int }

// capGroups refuses a tenant's change by which it has more of a direction than the most. What an
// operator has given beyond that may become less.
func capGroups(before, after *store.Interface, direction, tenant string) error {
	if tenant == "" {
		return nil
	}
	had, err := partOf(before, direction, tenant)
	if err != nil {
		return err
	}
	has, err := partOf(after, direction, tenant)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		field, what    string
		had, has, most int
	}{
		{"groups", "groups", had.groups, has.groups, mostGroups},
		{"match", "rules, which multiply inside groups with rules", had.rules, has.rules, mostRules},
		{"match", "alternatives in rules, whose lists multiply", had.entries, has.entries, mostEntries},
		{"match", "combinations of fields, prefix lengths and sizes of port ranges in rules", had.shapes, has.shapes, mostShapes},
	} {
		if c.has > max(c.most, c.had) {
			return wrong(c.field, fmt.Errorf("the tenant %s would have more than %d %s, on %s %s: that is the most", tenant, c.most, c.what, after.Dev, direction))
		}
	}
	return nil
}

// partOf counts what a tenant has of a direction.
func partOf(i *store.Interface, direction, tenant string) (p part, err error) {
	tree, problems := i.Direction(direction).Resolve(direction, true)
	if len(problems) > 0 {
		return p, fmt.Errorf("interface %s: %w", i.Dev, problems[0])
	}
	owned := make([]bool, len(tree.Nodes))
	for n, node := range tree.Nodes {
		if owned[n] = i.Owner(direction, node.Path) == tenant; owned[n] {
			p.groups++
		}
	}
	shapes := map[group.Shape]bool{}
	for _, r := range tree.Rules {
		if owned[r.Node] && p.entries <= allEntries {
			p.rules++
			p.entries += r.Selector.Entries()
			r.Selector.Shapes(shapes, allShapes)
		}
	}
	p.shapes = len(shapes)
	return p, nil
}

// capTokens refuses a tenant another token beyond the most. Those that it makes elsewhere meanwhile
// have the change tried again.
func capTokens(tx *store.Tx, tenant string) error {
	docs, err := tx.All(store.Prefix(store.Tokens)) // with those that are made together with this one
	if err != nil {
		return err
	}
	n, now := 0, time.Now()
	for _, d := range docs {
		var t store.Token
		if err := d.Into(&t); err != nil {
			return err
		}
		if t.Tenant == tenant && now.Before(t.Expires) {
			n++
		}
	}
	if n >= mostTokens {
		return refuse(http.StatusConflict, "the tenant %s has %d tokens, which is the most: take one back first", tenant, n)
	}
	return nil
}
