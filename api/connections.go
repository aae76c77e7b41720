package api

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"headgate/group"
	"headgate/store"
)

// ListConnections lists those that were put in groups that the caller may see.
func (s *Server) ListConnections(w http.ResponseWriter, r *http.Request, host, dev string, p ListConnectionsParams) {
	i, err := s.readInterface(r, host, dev, 0)
	if err != nil {
		problem(w, r, err)
		return
	}
	by := principalOf(r)
	var all []Connection
	for name, c := range i.Connections {
		if by.Tenant == "" || c.Tenant == by.Tenant {
			all = append(all, Connection{Connection: &name, Group: c.Group})
		}
	}
	slices.SortFunc(all, func(a, b Connection) int { return cmp.Compare(*a.Connection, *b.Connection) })
	out, err := cut(all, func(c Connection) string { return *c.Connection }, p.After, p.Limit)
	show(w, r, out, err)
}

// PutConnection puts one in a group.
func (s *Server) PutConnection(w http.ResponseWriter, r *http.Request, host, dev, connection string, _ PutConnectionParams) {
	want, err := body[Connection](r)
	if err != nil {
		problem(w, r, err)
		return
	}
	s.changeConnection(w, r, host, dev, connection, func(c *call, i *store.Interface, name string) (answer, error) {
		if !takes(i, want.Group, c.by.Tenant) {
			return answer{}, wrong("group", refuse(0, "there is no group %q that connections may be in", want.Group))
		}
		if c.by.Tenant != "" {
			switch mine, err := owns(i, want.Group, c.by.Tenant, ends(name)); {
			case err != nil:
				return answer{}, err
			case !mine:
				return answer{}, wrong("connection", refuse(0, "the match of your groups does not take the connection %s, as far as its ends show: where a rule asks for more (cgroup, vlan, pcp, mark, dscp, smac), its program puts it in at the socket of the host's agent", name))
			}
		}
		i.Connections[name] = store.Connection{Group: want.Group, Tenant: c.by.Tenant}
		if err := capConnections(i, c.by.Tenant); err != nil {
			return answer{}, err
		}
		return shows(http.StatusOK, Connection{Connection: &name, Group: want.Group})
	})
}

// DeleteConnection gives one back to the rules.
func (s *Server) DeleteConnection(w http.ResponseWriter, r *http.Request, host, dev, connection string, _ DeleteConnectionParams) {
	s.changeConnection(w, r, host, dev, connection, func(c *call, i *store.Interface, name string) (answer, error) {
		if _, there := i.Connections[name]; !there {
			return answer{}, notFound("connection", name)
		}
		delete(i.Connections, name)
		return gone, nil
	})
}

func (s *Server) changeConnection(w http.ResponseWriter, r *http.Request, host, dev, connection string, change func(c *call, i *store.Interface, name string) (answer, error)) {
	name, err := connName(connection)
	if err != nil {
		problem(w, r, wrong("connection", err))
		return
	}
	s.change(w, r, ledger(host, dev), func(c *call) (answer, error) {
		i, there, err := c.interfaceAt(host, dev)
		if err != nil {
			return answer{}, err
		}
		if !there || c.by.Tenant != "" && !i.HasTenant(c.by.Tenant) {
			return answer{}, notFound("interface", dev)
		}
		before, exists := i.Connections[name]
		another := exists && c.by.Tenant != "" && before.Tenant != c.by.Tenant
		var current any
		if exists && !another {
			current = Connection{Connection: &name, Group: before.Group}
		}
		if err := c.matches(current); err != nil {
			return answer{}, err
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
			return answer{}, err
		}
		return out, c.tx.Put(ledger(host, dev), next)
	})
}

// connName is one name for a connection, whichever end is said first.
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

// ends are a connection's as a packet's, by a name of connName.
func ends(name string) group.Packet {
	proto, a, b, _ := group.ParseConn(name)
	return group.Packet{Proto: proto, Src: a.Addr(), SPort: a.Port(), Dst: b.Addr(), DPort: b.Port()}
}
