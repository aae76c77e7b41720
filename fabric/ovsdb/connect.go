package ovsdb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// ConnectConfig connects bridges to the controllers of a network.
type ConnectConfig struct {
	Bridges     []string // names of bridges that exist
	Controllers []string // all their targets, as ParseTarget returns them
	SSL         SSL      // for targets of type ssl; the zero value leaves what Open vSwitch has
	Replace     bool     // remove controllers and SSL that Connect did not configure; otherwise they are an error
	DryRun      bool     // return the changes, and write nothing
}

// controllerPort is the port that IANA assigned to OpenFlow (OpenFlow 1.3.5, section 6.3.3).
const controllerPort = "6653"

// controllerBackoff is the max_backoff of a controller, the longest time in ms between attempts to connect. It is the smallest that
// ovs-vswitchd.conf.db(5) allows; the default is 8 s.
const controllerBackoff = 1000

// ParseTarget checks the target of a controller, ssl:ADDRESS[:PORT] or tcp:ADDRESS[:PORT], and returns it with a port,
// 6653 if it has none. An IPv6 address is in brackets.
func ParseTarget(text string) (string, error) {
	method, rest, _ := strings.Cut(text, ":")
	if method != "ssl" && method != "tcp" {
		return "", fmt.Errorf("%q is not the target of a controller: write ssl:ADDRESS:PORT, or tcp:ADDRESS:PORT without TLS", text)
	}
	host, port, err := net.SplitHostPort(rest)
	if err != nil { // without a port
		host, port = strings.TrimSuffix(strings.TrimPrefix(rest, "["), "]"), controllerPort
		if strings.Contains(host, ":") && !strings.HasPrefix(rest, "[") {
			return "", fmt.Errorf("%q has an IPv6 address without brackets: write %s:[%s]:%s", text, method, rest, controllerPort)
		}
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("%q has no TCP port of 1 to 65535: write for example %s:%s:%s", text, method, host, controllerPort)
	}
	if a, err := netip.ParseAddr(host); host == "" || strings.ContainsAny(host, " /") || err == nil && a.IsUnspecified() {
		return "", fmt.Errorf("%q has no address of a controller: write for example %s:192.0.2.1:%s", text, method, port)
	}
	return method + ":" + net.JoinHostPort(host, port), nil
}

// hasTarget reports whether a list has the target of a controller, with or without the port if that is 6653.
func hasTarget(list []string, target string) bool {
	return slices.ContainsFunc(list, func(one string) bool { return wholeTarget(one) == wholeTarget(target) })
}

// wholeTarget returns the target of a controller with a port. What ParseTarget refuses stays: "ptcp:6653" is none, but no other name
// of one.
func wholeTarget(target string) string {
	if whole, err := ParseTarget(target); err == nil {
		return whole
	}
	return target
}

// Connect makes bridges ready for Headgate, in one transaction: controllers and their certificates, OpenFlow 1.3, fail
// mode secure, no in-band control, and two VLAN tags. What they had is kept in external_ids for Disconnect. A second call
// with other controllers replaces those of the first. It returns the changes, none if the configuration was so already.
//
// Open vSwitch removes the flows of a bridge that gets its first controller.
func (s *Session) Connect(ctx context.Context, c ConnectConfig) (changes []Change, done Applied, err error) {
	if len(c.Bridges) == 0 || len(c.Controllers) == 0 {
		return nil, done, errors.New("cannot connect bridges: name at least one bridge and one controller")
	}
	return s.apply(ctx, "connect "+join(c.Bridges)+" to "+join(c.Controllers), c.DryRun, c.plan)
}

// Disconnect restores what bridges had before Connect, in one transaction, and what all bridges share when no connected
// bridge is left. It leaves what was changed since, and bridges that are not connected. With dryRun it writes nothing.
func (s *Session) Disconnect(ctx context.Context, bridges []string, dryRun bool) (changes []Change, done Applied, err error) {
	return s.apply(ctx, "disconnect "+join(bridges), dryRun, func(t tables) (*plan, error) { return disconnect(t, bridges) })
}

// find returns bridges by their names.
func (t tables) find(names []string) (ids []uuid, err error) {
	for _, name := range names {
		id := t.bridgeNamed(name)
		if id == "" {
			var has []string
			for _, r := range t["Bridge"] {
				has = append(has, r.(*bridgeRow).name)
			}
			slices.Sort(has)
			if len(has) == 0 {
				return nil, fmt.Errorf("there is no bridge: create one with \"ovs-vsctl add-br %s\"", name)
			}
			return nil, fmt.Errorf("there is no bridge %s: the bridges are %s", name, join(has))
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// bridgeNamed returns the bridge of a name, "" if there is none.
func (t tables) bridgeNamed(name string) uuid {
	for id, r := range t["Bridge"] {
		if r.(*bridgeRow).name == name {
			return id
		}
	}
	return ""
}

func (c ConnectConfig) plan(t tables) (*plan, error) {
	ids, err := t.find(c.Bridges)
	if err != nil {
		return nil, err
	}
	p := &plan{}
	rootID, root := t.rootRow()
	was, _, err := readBefore("the table "+database, root.externalIDs)
	if err != nil {
		return nil, err
	}
	guard := unchanged(database, rootID, root, "ssl", "other_config", "external_ids")
	if err := c.connectSSL(p, t, &was, rootID, root); err != nil {
		return nil, err
	}
	was.set(p, rootSettings, database, "", rootID, root)
	if len(p.operations) > 0 {
		keep, err := was.write(database, rootID, root.externalIDs)
		if err != nil {
			return nil, err
		}
		p.operations = append([]operation{guard}, append(p.operations, keep...)...)
	}
	for _, id := range ids {
		if err := c.connectBridge(p, t, id, t["Bridge"][id].(*bridgeRow)); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (c ConnectConfig) connectBridge(p *plan, t tables, id uuid, has *bridgeRow) error {
	was, _, err := readBefore("the bridge "+has.name, has.externalIDs)
	if err != nil {
		return err
	}
	own := &plan{changes: p.changes}
	if _, fixed := has.otherConfig["datapath-id"]; !fixed {
		was.DatapathID = has.datapathID
	}
	was.set(own, was.bridgeSettings(), "Bridge", has.name, id, has)
	if err := c.connectControllers(own, t, &was, id, has); err != nil {
		return err
	}
	keep, err := was.write("Bridge", id, has.externalIDs)
	if err != nil {
		return err
	}
	if own.add(keep...); len(own.operations) > 0 {
		p.add(unchanged("Bridge", id, has, "protocols", "fail_mode", "controller", "other_config", "external_ids"))
		p.add(own.operations...)
		p.changes = own.changes
	}
	return nil
}

// connectControllers gives a bridge the controllers and no other one.
func (c ConnectConfig) connectControllers(p *plan, t tables, was *before, id uuid, has *bridgeRow) error {
	var now, foreign, after []string
	var remove setOf[uuid]
	for _, row := range has.controllers {
		r, err := find[*controllerRow](t, "Controller", row, "the bridge "+has.name)
		if err != nil {
			return err
		}
		if r.service() {
			continue
		}
		now = append(now, r.target)
		wanted, ours := hasTarget(c.Controllers, r.target), managed(r.externalIDs)
		if !ours && (wanted || c.Replace) {
			was.Rows = slices.DeleteFunc(was.Rows, func(saved savedRow) bool { return wholeTarget(saved.target()) == wholeTarget(r.target) })
			if err := was.save(r.configuration()); err != nil {
				return err
			}
		}
		switch {
		case wanted && hasTarget(after, r.target): // twice: another program has configured it, too
			remove = append(remove, row)
		case wanted:
			after = append(after, r.target)
			adopt(p, has.name, row, r)
		case ours || c.Replace:
			remove = append(remove, row)
		default:
			foreign = append(foreign, r.target)
		}
	}
	if len(foreign) > 0 {
		return fmt.Errorf("the bridge %s has another controller (%s), and two that do not know each other undo each other's flows: add --replace to remove it; \"headgate network disconnect %s\" restores it", has.name, join(foreign), has.name)
	}
	if len(remove) > 0 {
		p.add(mutate("Bridge", whereRow(id), "controller", "delete", remove))
	}
	for _, target := range c.Controllers {
		if hasTarget(after, target) {
			continue
		}
		after = append(after, target)
		name := named(fmt.Sprint("controller_", uuidName(id), "_", len(after)))
		p.add(insert("Controller", name, map[string]any{"target": target, "connection_mode": "out-of-band",
			"max_backoff": controllerBackoff, "external_ids": mapOf[string]{managedKey: "true"}}),
			mutate("Bridge", whereRow(id), "controller", "insert", setOf[named]{name}))
	}
	if len(now) != len(after) || !sameElements(now, after) {
		slices.Sort(now)
		slices.Sort(after)
		p.changed(has.name, "controller", now, after)
	}
	return nil
}

// adopt gives the row of a controller what those that Connect makes have.
func adopt(p *plan, bridge string, id uuid, r *controllerRow) {
	columns := map[string]any{}
	if optional(r.mode) != "out-of-band" {
		columns["connection_mode"] = "out-of-band"
		p.changed(bridge, "connection_mode of "+r.target, r.mode, []string{"out-of-band"})
	}
	if optional(r.backoff) != controllerBackoff {
		columns["max_backoff"] = controllerBackoff
		var now []string
		if len(r.backoff) > 0 {
			now = []string{fmt.Sprint(r.backoff[0])}
		}
		p.changed(bridge, "max_backoff of "+r.target, now, []string{fmt.Sprint(controllerBackoff)})
	}
	p.add(update("Controller", id, columns)...)
	if !managed(r.externalIDs) {
		p.add(setKeys("Controller", id, "external_ids", map[string]string{managedKey: "true"})...)
	}
}

// connectSSL sets the files for controllers of type ssl.
func (c ConnectConfig) connectSSL(p *plan, t tables, was *before, rootID uuid, root *rootRow) error {
	var now SSL
	ours := false
	for _, id := range root.ssl {
		r, err := find[*sslRow](t, "SSL", id, "the table "+database)
		if err != nil {
			return err
		}
		now, ours = r.files(), managed(r.externalIDs)
		switch {
		case c.SSL == (SSL{}) || c.SSL == now || ours:
		case !c.Replace:
			return fmt.Errorf("other files for TLS are configured in Open vSwitch (%s), and managers may use them as well: add --replace to use the new ones for all", join(now.list()))
		default:
			was.Rows = nil
			if err := was.save(r.columns()); err != nil {
				return err
			}
		}
	}
	if now == (SSL{}) && c.SSL == now {
		for _, target := range c.Controllers {
			if strings.HasPrefix(target, "ssl:") {
				return fmt.Errorf("no certificate is configured in Open vSwitch for %s: get one with \"headgate network certificate\", and add --ca, --cert and --key", target)
			}
		}
	}
	if c.SSL == (SSL{}) || c.SSL == now {
		return nil
	}
	if c.SSL.PrivateKey == "" || c.SSL.Certificate == "" || c.SSL.CA == "" {
		return errors.New("TLS needs the files of the authority, the certificate and its private key: add --ca, --cert and --key")
	}
	p.add(insert("SSL", "ssl", map[string]any{"private_key": c.SSL.PrivateKey, "certificate": c.SSL.Certificate, "ca_cert": c.SSL.CA,
		"external_ids": mapOf[string]{managedKey: "true"}}))
	p.add(update(database, rootID, map[string]any{"ssl": setOf[named]{"ssl"}})...)
	p.changed("", "ssl", now.list(), c.SSL.list())
	return nil
}
