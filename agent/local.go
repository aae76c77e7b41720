package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"headgate.dev/headgate/api/local"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/ask"
	"headgate.dev/headgate/shaper"
)

// maxConnectionsPerUser is the most connections that a user's programs may have assigned at a time. One more
// unassigns the oldest, so that programs that end without unassigning do not fill the table. A
// restarted agent counts from zero.
const maxConnectionsPerUser = 1024

// userAssignment is a connection that a program assigned to a group.
type userAssignment struct {
	dev  string
	conn shaper.Conn
	path string
}

// Serve opens the socket at which programs of this host assign their own connections to groups. It
// must be called before Run, which executes the requests.
func (a *Agent) Serve(path string) (io.Closer, error) {
	a.requests = make(ask.Loop)
	return ask.Serve(path, a.handleRequest)
}

// handleRequest answers a request.
func (a *Agent) handleRequest(q ask.Request) any {
	var out local.Response
	err := func() error {
		var r local.Request
		if err := json.Unmarshal(q.Text, &r); err != nil || (r.Assign == "") != r.Unassign {
			return errors.New(`request is not a JSON object such as {"assign": "backup"} or {"unassign": true}`)
		}
		conn, err := connectionOf(q.FD)
		if err != nil {
			return err
		}
		out.Connection = conn.String()
		var refused error
		err = a.requests.Do(func() { // on the agent's thread, which is in the agent's network namespace
			if q.User != 0 {
				refused = verifyAddresses(q.FD, conn)
			}
			switch {
			case refused != nil:
			case r.Unassign:
				out.Devs, refused = a.unassign(q.User, r.Dev, conn)
			default:
				out.Group, out.Devs, refused = a.assign(q.User, r, conn)
			}
		})
		return errors.Join(err, refused)
	}()
	out.ErrorResponse = ask.NewErrorResponse(err)
	return out
}

// shapedDevices returns the shaped devices that the configuration names, or only the named one.
func (a *Agent) shapedDevices(dev string) (out []*deviceState, err error) {
	dev = Names(a.devicesSeen).Kernel(dev)
	for _, index := range slices.Sorted(maps.Keys(a.devices)) {
		if m := a.devices[index]; m.desired != nil && m.appliedHash != "" && (dev == "" || m.name == dev) {
			out = append(out, m)
		}
	}
	if len(out) == 0 && dev != "" {
		return nil, fmt.Errorf("the agent does not shape device %q", dev)
	}
	return out, nil
}

// move is the change of a connection's group on one device; "" means that the rules decide.
type move struct {
	*deviceState
	from, to string
}

// assign puts a user's connection in a group, on all of the devices or on none.
func (a *Agent) assign(user uint32, r local.Request, conn shaper.Conn) (path string, devs []string, err error) {
	devices, err := a.shapedDevices(r.Dev)
	if err != nil {
		return "", nil, err
	}
	var moves []move
	none := fmt.Errorf("there is no group %q", r.Assign)
	for _, m := range devices {
		to, err := m.desired.plan.Leaf(r.Assign)
		switch {
		case err != nil:
			if !errors.Is(none, os.ErrPermission) {
				none = err
			}
		case !a.hasPermission(user, m.name, to):
			none = ask.Denied(fmt.Sprintf("user %d has no permission to assign connections to group %s of %s: add the user under \"join\" in the group's configuration", user, to, m.name))
		case path != "" && path != to:
			return "", nil, fmt.Errorf("group name %q is ambiguous: %s on one device, %s on another: use the full path", r.Assign, path, to)
		default:
			from, err := a.currentGroup(user, m, conn)
			if err != nil {
				return "", nil, err
			}
			path = to
			moves = append(moves, move{m, from, to})
		}
	}
	if len(moves) == 0 {
		return "", nil, none
	}
	devs, err = a.move(user, conn, moves)
	return path, devs, err
}

// unassign ends the assignment of a user's connection, on all of the devices or on none.
func (a *Agent) unassign(user uint32, dev string, conn shaper.Conn) (devs []string, err error) {
	devices, err := a.shapedDevices(dev)
	if err != nil {
		return nil, err
	}
	var moves []move
	for _, m := range devices {
		from, err := a.currentGroup(user, m, conn)
		if err != nil {
			return nil, err
		}
		if from != "" {
			moves = append(moves, move{m, from, ""})
		}
	}
	if len(moves) == 0 {
		return nil, fmt.Errorf("connection %v is not assigned to any group", conn)
	}
	return a.move(user, conn, moves)
}

// move applies all of the moves, or none.
func (a *Agent) move(user uint32, conn shaper.Conn, moves []move) (devs []string, err error) {
	for n, m := range moves {
		if err := a.setGroup(m.deviceState, conn, m.to); err != nil {
			for _, done := range moves[:n] {
				err = errors.Join(err, a.setGroup(done.deviceState, conn, done.from))
			}
			return nil, err
		}
		devs = append(devs, m.name)
	}
	for _, m := range moves {
		a.recordAssignment(user, userAssignment{m.name, conn, m.to})
	}
	a.Log.Debug("moved a program's connection", "user", user, "connection", conn.String(), "group", moves[0].to, "devices", devs)
	return devs, nil
}

// currentGroup returns the group that a connection is assigned to, or "". It returns an error if the user
// has no permission to remove the connection from the group.
func (a *Agent) currentGroup(user uint32, m *deviceState, conn shaper.Conn) (path string, err error) {
	if c := m.desired.controllerGroup(conn); c != "" {
		return "", fmt.Errorf("the controller assigned connection %v to group %s of %s: unassign it through the controller", conn, c, m.name)
	}
	e, err := a.engine(m)
	if err != nil {
		return "", err
	}
	path, err = e.Assigned(m.name, conn)
	if err == nil && path != "" && !a.hasPermission(user, m.name, path) {
		err = ask.Denied(fmt.Sprintf("connection %v is in group %s of %s, and user %d has no permission to remove it from the group", conn, path, m.name, user))
	}
	return path, err
}

// setGroup assigns a connection to a group, or unassigns it if path is "".
func (a *Agent) setGroup(m *deviceState, conn shaper.Conn, path string) error {
	e, err := a.engine(m)
	switch {
	case err != nil:
		return err
	case path == "":
		return e.Unassign(m.name, []shaper.Conn{conn})
	}
	return e.Assign(m.name, []shaper.Assignment{{Conn: conn, Group: path}})
}

func (a *Agent) engine(m *deviceState) (shaper.Shaper, error) {
	if e, ok := a.Engines[m.desired.engine]; ok {
		return e, nil
	}
	return nil, fmt.Errorf("engine %s of %s is not built into this program", m.desired.engine, m.name)
}

// hasPermission reports whether a user has permission to assign connections to a group of a device. The
// permission is required in each direction that has the group, because the connection is assigned
// in all of them.
func (a *Agent) hasPermission(user uint32, dev, path string) bool {
	i, _ := a.named.For(dev)
	if user == 0 {
		return true
	}
	found := false
	for _, d := range []*group.Direction{i.Out, i.In} {
		if d == nil {
			continue
		}
		users, ok := d.Joiners(path)
		if !ok {
			continue
		}
		found = true
		if !slices.ContainsFunc(users, func(name string) bool { n, err := ask.User(name); return err == nil && n == user }) {
			return false
		}
	}
	return found
}

// recordAssignment records a user's connection and unassigns the oldest one if there are too many.
// Connections that were unassigned do not count.
func (a *Agent) recordAssignment(user uint32, p userAssignment) {
	if user == 0 {
		return
	}
	if a.userAssignments == nil {
		a.userAssignments = map[uint32][]userAssignment{}
	}
	all := slices.DeleteFunc(a.userAssignments[user], func(o userAssignment) bool { return o.dev == p.dev && o.conn == p.conn })
	if p.path != "" {
		all = append(all, p)
	}
	for len(all) > maxConnectionsPerUser {
		a.unassignOldest(all[0])
		all = all[1:]
	}
	a.userAssignments[user] = all
}

// unassignOldest unassigns a connection if it still is in the group that its program chose.
func (a *Agent) unassignOldest(p userAssignment) {
	devices, err := a.shapedDevices(p.dev)
	if err != nil {
		return // the device and its groups no longer exist
	}
	m := devices[0]
	if m.desired.controllerGroup(p.conn) != "" {
		return
	}
	e, err := a.engine(m)
	if err != nil {
		return
	}
	if now, err := e.Assigned(p.dev, p.conn); err == nil && now == p.path {
		if err := e.Unassign(p.dev, []shaper.Conn{p.conn}); err != nil {
			a.Log.Warn("cannot unassign connection", "dev", p.dev, "error", err)
		}
	}
}

// controllerGroup returns the group to which the controller assigned a connection, or "".
func (w *DesiredState) controllerGroup(conn shaper.Conn) string {
	for _, c := range w.connections {
		if c.Conn == conn || c.Conn.Proto == conn.Proto && c.Conn.A == conn.B && c.Conn.B == conn.A {
			return c.Group
		}
	}
	return ""
}
