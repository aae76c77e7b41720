package server

import (
	"fmt"
	"net/http"
	"time"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/store"
)

// Quotas of one tenant, chosen by this project so that one tenant cannot use up what all tenants
// share. A direction has at most 16,000 groups and 16,384 rules, and its classifier at most a million
// entries and 128 shapes. The user of a program has the same quota of connections as a tenant.
const (
	maxConnections = 1024  // assigned connections per device
	maxGroups      = 1024  // groups per direction, including those that the operator created
	maxRules       = 2048  // rules per direction, counted after nested rules are multiplied
	maxEntries     = 65536 // classifier entries of these rules (group.Selector)
	maxShapes      = 32    // classifier shapes per direction
	maxTokens      = 100
	// maxTenantBytes is of a tenant's groups and connections on a device, as JSON: 1,024 groups in each direction have 260 KB.
	maxTenantBytes = 512 << 10
	// maxTenantTotal is of those on all devices together.
	maxTenantTotal = 16 << 20

	countLimitEntries, countLimitShapes = 1 << 20, 128 // countTenant stops counting here
)

// checkConnectionQuota refuses a change after which the tenant exceeds its quota of connections on a device.
func checkConnectionQuota(i *store.Interface, tenant string) error {
	n := 0
	for _, c := range i.Connections {
		if c.Tenant == tenant {
			n++
		}
	}
	if tenant == "" || n <= maxConnections {
		return nil
	}
	return invalidField("connection", fmt.Errorf("quota exceeded: tenant %s has %d assigned connections on %s: unassign one first", tenant, maxConnections, i.Dev))
}

// tenantCounts counts what a tenant owns in a direction.
type tenantCounts struct{ groups, rules, entries, shapes int }

// checkGroupQuotas refuses a tenant's change after which the tenant exceeds a quota of a direction. A tenant
// to which an operator has given more than the quota may keep or reduce its share, but not raise it.
func checkGroupQuotas(before, after *store.Interface, direction, tenant string) error {
	if tenant == "" {
		return nil
	}
	had, err := countTenant(before, direction, tenant)
	if err != nil {
		return err
	}
	has, err := countTenant(after, direction, tenant)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		field, what    string
		had, has, most int
	}{
		{"groups", "groups", had.groups, has.groups, maxGroups},
		{"match", "rules (rules of nested groups multiply)", had.rules, has.rules, maxRules},
		{"match", "classifier entries (the lists of a rule multiply)", had.entries, has.entries, maxEntries},
		{"match", "combinations of fields, prefix lengths and port range sizes in rules", had.shapes, has.shapes, maxShapes},
	} {
		if c.has > max(c.most, c.had) {
			return invalidField(c.field, fmt.Errorf("quota exceeded: tenant %s would have more than %d %s on %s %s", tenant, c.most, c.what, after.Dev, direction))
		}
	}
	return nil
}

// countTenant counts the tenant's groups, rules, classifier entries and shapes in a direction.
func countTenant(i *store.Interface, direction, tenant string) (p tenantCounts, err error) {
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
		if owned[r.Node] && p.entries <= countLimitEntries {
			p.rules++
			p.entries += r.Selector.Entries()
			r.Selector.Shapes(shapes, countLimitShapes)
		}
	}
	p.shapes = len(shapes)
	return p, nil
}

// checkTokenQuota refuses a token that exceeds the tenant's quota. A token that is created concurrently
// makes the transaction run again.
func checkTokenQuota(tx *store.Tx, tenant string) error {
	docs, err := tx.All(store.Prefix(store.Tokens)) // includes tokens that the same transaction creates
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
	if n >= maxTokens {
		return refuse(http.StatusConflict, "quota exceeded: tenant %s has %d tokens: revoke one first", tenant, n)
	}
	return nil
}
