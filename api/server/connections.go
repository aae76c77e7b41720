package server

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/store"
)

// ListConnections lists the assigned connections that the caller may see.
func (s *Server) ListConnections(w http.ResponseWriter, r *http.Request, host, dev string, p api.ListConnectionsParams) {
	i, err := s.readInterface(r, host, dev, 0)
	if err != nil {
		problem(w, r, err)
		return
	}
	by := principalOf(r)
	var all []api.Connection
	for name, c := range i.Connections {
		if by.Tenant == "" || c.Tenant == by.Tenant {
			all = append(all, api.Connection{Connection: &name, Group: c.Group})
		}
	}
	slices.SortFunc(all, func(a, b api.Connection) int { return cmp.Compare(*a.Connection, *b.Connection) })
	out, err := pageOf(all, func(c api.Connection) string { return *c.Connection }, p.After, p.Limit)
	writeResource(w, r, out, err)
}

// PutConnection assigns a connection to a group.
func (s *Server) PutConnection(w http.ResponseWriter, r *http.Request, host, dev, connection string, _ api.PutConnectionParams) {
	want, err := parseBody[api.Connection](r)
	if err != nil {
		problem(w, r, err)
		return
	}
	s.changeConnection(w, r, host, dev, connection, func(c *changeRequest, i *store.Interface, name string) (response, error) {
		if !assignable(i, want.Group, c.by.Tenant) {
			return response{}, invalidField("group", refuse(0, "no leaf group %q to which connections can be assigned", want.Group))
		}
		if c.by.Tenant != "" {
			switch mine, err := tenantOwnsConnection(i, want.Group, c.by.Tenant, connPacket(name)); {
			case err != nil:
				return response{}, err
			case !mine:
				return response{}, invalidField("connection", refuse(0, "the connection %s does not match your groups by its addresses and ports: if a rule has other selectors (cgroup, vlan, pcp, mark, dscp, smac), assign it from its own program, at the socket of the host's agent", name))
			}
		}
		i.Connections[name] = store.Connection{Group: want.Group, Tenant: c.by.Tenant}
		if err := checkConnectionQuota(i, c.by.Tenant); err != nil {
			return response{}, err
		}
		return respondWith(http.StatusOK, api.Connection{Connection: &name, Group: want.Group})
	})
}

// DeleteConnection unassigns a connection, so that the rules apply to it again.
func (s *Server) DeleteConnection(w http.ResponseWriter, r *http.Request, host, dev, connection string, _ api.DeleteConnectionParams) {
	s.changeConnection(w, r, host, dev, connection, func(c *changeRequest, i *store.Interface, name string) (response, error) {
		if _, there := i.Connections[name]; !there {
			return response{}, notFound("connection", name)
		}
		delete(i.Connections, name)
		return noContent, nil
	})
}

// changeConnection validates a connection's name, checks that the caller may see the interface, and runs
// change on a copy of the interface. A connection that another tenant assigned is not found.
func (s *Server) changeConnection(w http.ResponseWriter, r *http.Request, host, dev, connection string, change func(c *changeRequest, i *store.Interface, name string) (response, error)) {
	name, err := connName(connection)
	if err != nil {
		problem(w, r, invalidField("connection", err))
		return
	}
	s.change(w, r, interfaceKey(host, dev), func(c *changeRequest) (response, error) {
		i, there, err := c.interfaceAt(host, dev)
		if err != nil {
			return response{}, err
		}
		if !there || c.by.Tenant != "" && !i.HasTenant(c.by.Tenant) {
			return response{}, notFound("interface", dev)
		}
		before, exists := i.Connections[name]
		another := exists && c.by.Tenant != "" && before.Tenant != c.by.Tenant
		var current any
		if exists && !another {
			current = api.Connection{Connection: &name, Group: before.Group}
		}
		if err := c.checkIfMatch(current); err != nil {
			return response{}, err
		}
		next := i.Clone()
		if next.Connections == nil {
			next.Connections = map[string]store.Connection{}
		}
		out, err := change(c, next, name)
		if err == nil && another {
			err = notFound("connection", name)
		}
		if err != nil {
			return response{}, err
		}
		return out, c.putInterfaceDocument(host, i, next)
	})
}

// connName returns the canonical name of a connection: the lower endpoint comes first.
func connName(text string) (string, error) {
	proto, a, b, err := group.ParseConn(text)
	if err != nil {
		return "", err
	}
	if b.Compare(a) < 0 {
		a, b = b, a
	}
	return fmt.Sprintf("%s %v %v", group.ProtoName(proto), a, b), nil
}

// connPacket parses a name from connName into a packet with the connection's protocol, addresses and ports.
func connPacket(name string) group.Packet {
	proto, a, b, _ := group.ParseConn(name)
	return group.Packet{Proto: proto, Src: a.Addr(), SPort: a.Port(), Dst: b.Addr(), DPort: b.Port()}
}
