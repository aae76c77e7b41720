package server

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/store"
)

// checkOwners refuses an interface in which a tenant could get more than its groups. A tenant's rules apply to
// the packets that its group matches, so that a group without match would give the tenant the whole
// interface. Only a default group may be without match, because it cannot have groups. A tenant's group
// contains no group of another tenant, because a tenant sees and changes everything in its groups.
func checkOwners(i *store.Interface) error {
	for _, at := range slices.Sorted(maps.Keys(i.Owners)) {
		direction, path, _ := strings.Cut(at, "/")
		tenant := i.Owners[at]
		parent, _ := group.Split(path)
		around := i.Owner(direction, parent)
		d := i.Direction(direction)
		if d == nil || d.Find(path) == nil || around == tenant {
			continue
		}
		if around != "" {
			return fmt.Errorf("group %s cannot belong to tenant %s: its parent group belongs to tenant %s, who sees and changes all groups in it: move it out of that tenant's groups", at, tenant, around)
		}
		if g := d.Find(path); len(g.Match) == 0 && !g.Default {
			return fmt.Errorf("group %s cannot belong to tenant %s without match, because rules in it would apply to the whole interface: add match, or default: true if the tenant needs no groups in it", at, tenant)
		}
	}
	return nil
}

// assignable reports whether a tenant, "" for an operator, may assign connections to a group. The group must
// be a leaf group in some direction, and must belong to the tenant in each direction that has it, because
// the assignment applies to all these directions.
func assignable(i *store.Interface, path, tenant string) bool {
	leaf := false
	for _, direction := range directions {
		d := i.Direction(direction)
		if d == nil {
			continue
		}
		g := d.Find(path)
		if g == nil {
			continue
		}
		if !canSee(i, groupRef{direction: direction, path: path}, store.Token{Tenant: tenant}) {
			return false
		}
		leaf = leaf || len(g.Groups) == 0
	}
	return leaf
}

// assignableConnections returns the connections that may stay assigned to their groups in i.
func assignableConnections(all map[string]store.Connection, i *store.Interface) map[string]store.Connection {
	out := map[string]store.Connection{}
	for name, c := range all {
		if assignable(i, c.Group, c.Tenant) {
			out[name] = c
		}
	}
	return out
}

// tenantOwnsConnection reports whether a tenant may assign a connection to a group, judged by the addresses and ports alone
// in each direction that has the group. The controller does not know which endpoint is local. The
// connection is the tenant's if it belongs to the tenant with one orientation and to no other tenant with
// the opposite one.
func tenantOwnsConnection(i *store.Interface, path, tenant string, conn group.Packet) (bool, error) {
	turned := conn
	turned.Src, turned.SPort, turned.Dst, turned.DPort = conn.Dst, conn.DPort, conn.Src, conn.SPort
	mine, others := [2]bool{true, true}, [2]bool{}
	for _, direction := range directions {
		d := i.Direction(direction)
		if d == nil || d.Find(path) == nil {
			continue
		}
		tree, problems := d.Resolve(direction, true)
		if len(problems) > 0 {
			return false, fmt.Errorf("interface %s: %w", i.Dev, problems[0])
		}
		ways := [2]group.Packet{conn, turned}
		if direction == "in" {
			ways[0], ways[1] = ways[1], ways[0]
		}
		for n, p := range ways {
			of, matched := packetOwner(i, direction, tree, p)
			mine[n] = mine[n] && of == tenant
			others[n] = others[n] || matched && of != "" && of != tenant
		}
	}
	return mine[0] && !others[1] || mine[1] && !others[0], nil
}

// packetOwner returns the tenant to which a packet belongs, "" for the operator: the owner of the group to
// which the rules assign the packet; if no rule does, the tenant whose group matches the packet; otherwise
// the owner of the default group, with matched false. Rules with selectors other than addresses, ports and
// protocol match nothing here.
func packetOwner(i *store.Interface, direction string, tree group.Tree, p group.Packet) (tenant string, matched bool) {
	for _, r := range tree.Rules {
		if matchesEnds(r.Selector, p) {
			return i.Owner(direction, tree.Nodes[r.Node].Path), true
		}
	}
	walkGroups(i.Direction(direction).Groups, "", func(path string, g group.Group) (inside bool) {
		if matched || len(g.Match) > 0 && !slices.ContainsFunc(g.Match, func(s group.Selector) bool { return matchesEnds(s, p) }) {
			return false
		}
		tenant = i.Owners[direction+"/"+path]
		matched = tenant != "" && len(g.Match) > 0
		return !matched
	})
	if matched {
		return tenant, true
	}
	return i.Owner(direction, tree.Nodes[tree.Default].Path), false
}

// matchesEnds reports whether a selector has only addresses, ports and protocol, and matches the packet.
func matchesEnds(s group.Selector, p group.Packet) bool {
	return s.OnlyFiveTuple() && s.Matches(p)
}
