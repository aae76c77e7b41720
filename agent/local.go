package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"headgate/api/local"
	"headgate/group"
	"headgate/internal/ask"
	"headgate/shaper"
)

// mostOfUser is how many connections a user's programs have in groups at a time, of which the
// oldest gives way to the newest: a program that ends without giving its own back does not fill
// the table. An agent that starts anew counts anew.
const mostOfUser = 1024

// passed is a connection that a program has put in a group.
type passed struct {
	dev  string
	conn shaper.Conn
	path string
}

// Serve opens the socket at which programs of this host put connections of their own in groups.
// It comes before Run, which does what they ask.
func (a *Agent) Serve(path string) (io.Closer, error) {
	a.asks = make(ask.Loop)
	return ask.Serve(path, a.asked)
}

// asked answers a program.
func (a *Agent) asked(q ask.Question) any {
	var out local.Answer
	err := func() error {
		var r local.Request
		if err := json.Unmarshal(q.Text, &r); err != nil || (r.Assign == "") != r.Unassign {
			return errors.New(`the request is no JSON object such as {"assign": "backup"} or {"unassign": true}`)
		}
		conn, err := connOf(q.FD)
		if err != nil {
			return err
		}
		out.Connection = conn.String()
		var refused error
		err = a.asks.Do(func() { // on the agent's thread: it is in the agent's network namespace
			if q.User != 0 {
				refused = genuine(q.FD, conn)
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
	out.Failure = ask.FailureOf(err)
	return out
}

// divided are the devices that have groups of the files, or the one that is named.
func (a *Agent) divided(dev string) (out []*memory, err error) {
	dev = Names(a.there).Kernel(dev)
	for _, index := range slices.Sorted(maps.Keys(a.devices)) {
		if m := a.devices[index]; m.want != nil && m.mine != "" && (dev == "" || m.name == dev) {
			out = append(out, m)
		}
	}
	if len(out) == 0 && dev != "" {
		return nil, fmt.Errorf("the agent divides no device %q", dev)
	}
	return out, nil
}

// move is where a connection is on a device, and where it goes; "" is to the rules.
type move struct {
	*memory
	from, to string
}

// assign puts a user's connection in a group: on all of the devices, or on none.
func (a *Agent) assign(user uint32, r local.Request, conn shaper.Conn) (path string, devs []string, err error) {
	devices, err := a.divided(r.Dev)
	if err != nil {
		return "", nil, err
	}
	var moves []move
	none := fmt.Errorf("there is no group %q", r.Assign)
	for _, m := range devices {
		to, err := m.want.plan.Leaf(r.Assign)
		switch {
		case err != nil:
			if !errors.Is(none, os.ErrPermission) {
				none = err
			}
		case !a.may(user, m.name, to):
			none = ask.Denied(fmt.Sprintf("the user %d may not put connections in the group %s of %s: name it under \"join\" in its configuration", user, to, m.name))
		case path != "" && path != to:
			return "", nil, fmt.Errorf("%q is %s on one device, and %s on another: write the one that you mean", r.Assign, path, to)
		default:
			from, err := a.from(user, m, conn)
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

// unassign gives a user's connection back to the rules, on all of the devices or on none.
func (a *Agent) unassign(user uint32, dev string, conn shaper.Conn) (devs []string, err error) {
	devices, err := a.divided(dev)
	if err != nil {
		return nil, err
	}
	var moves []move
	for _, m := range devices {
		from, err := a.from(user, m, conn)
		if err != nil {
			return nil, err
		}
		if from != "" {
			moves = append(moves, move{m, from, ""})
		}
	}
	if len(moves) == 0 {
		return nil, fmt.Errorf("the connection %v was put in no group", conn)
	}
	return a.move(user, conn, moves)
}

// move makes all of the moves, or none.
func (a *Agent) move(user uint32, conn shaper.Conn, moves []move) (devs []string, err error) {
	for n, m := range moves {
		if err := a.put(m.memory, conn, m.to); err != nil {
			for _, done := range moves[:n] {
				err = errors.Join(err, a.put(done.memory, conn, done.from))
			}
			return nil, err
		}
		devs = append(devs, m.name)
	}
	for _, m := range moves {
		a.remember(user, passed{m.name, conn, m.to})
	}
	a.Log.Debug("a program's connection was moved", "user", user, "connection", conn.String(), "group", moves[0].to, "devices", devs)
	return devs, nil
}

// from is the group that a connection was put in, "" if in none, or an error if a user may not take
// it out of there.
func (a *Agent) from(user uint32, m *memory, conn shaper.Conn) (path string, err error) {
	if c := m.want.placed(conn); c != "" {
		return "", fmt.Errorf("the service has the connection %v in the group %s of %s: have it taken out there", conn, c, m.name)
	}
	e, err := a.engine(m)
	if err != nil {
		return "", err
	}
	path, err = e.Assigned(m.name, conn)
	if err == nil && path != "" && !a.may(user, m.name, path) {
		err = ask.Denied(fmt.Sprintf("the connection %v is in the group %s of %s, which is not the user %d's to take it out of", conn, path, m.name, user))
	}
	return path, err
}

// put puts a connection in a group, or gives it back for "".
func (a *Agent) put(m *memory, conn shaper.Conn, path string) error {
	e, err := a.engine(m)
	switch {
	case err != nil:
		return err
	case path == "":
		return e.Unassign(m.name, []shaper.Conn{conn})
	}
	return e.Assign(m.name, []shaper.Assignment{{Conn: conn, Group: path}})
}

func (a *Agent) engine(m *memory) (shaper.Shaper, error) {
	if e, ok := a.Engines[m.want.engine]; ok {
		return e, nil
	}
	return nil, fmt.Errorf("the engine %s of %s is not built into this program", m.want.engine, m.name)
}

// may tells whether a user may put connections in a group of a device: in each direction that
// has it, because that is where they go.
func (a *Agent) may(user uint32, dev, path string) bool {
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

// remember counts a user's connections, and gives the oldest back if there are too many. What went
// back to the rules is not counted.
func (a *Agent) remember(user uint32, p passed) {
	if user == 0 {
		return
	}
	if a.passed == nil {
		a.passed = map[uint32][]passed{}
	}
	all := slices.DeleteFunc(a.passed[user], func(o passed) bool { return o.dev == p.dev && o.conn == p.conn })
	if p.path != "" {
		all = append(all, p)
	}
	for len(all) > mostOfUser {
		a.forget(all[0])
		all = all[1:]
	}
	a.passed[user] = all
}

// forget gives a connection back, if it still is where its program has put it.
func (a *Agent) forget(p passed) {
	devices, err := a.divided(p.dev)
	if err != nil {
		return // and so is the connection's group
	}
	m := devices[0]
	if m.want.placed(p.conn) != "" {
		return
	}
	e, err := a.engine(m)
	if err != nil {
		return
	}
	if now, err := e.Assigned(p.dev, p.conn); err == nil && now == p.path {
		if err := e.Unassign(p.dev, []shaper.Conn{p.conn}); err != nil {
			a.Log.Warn("a connection cannot be given back", "dev", p.dev, "error", err)
		}
	}
}

// placed is the group that the service has a connection in, "" if in none.
func (w *want) placed(conn shaper.Conn) string {
	for _, c := range w.connections {
		if c.Conn == conn || c.Conn.Proto == conn.Proto && c.Conn.A == conn.B && c.Conn.B == conn.A {
			return c.Group
		}
	}
	return ""
}
