package ovsdb

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// operations returns what changes the state to the desired one. It is empty if that is the state.
func (b BridgeConfig) operations(t tables) ([]operation, error) {
	id, has := t.bridgeNamed(b.Name)
	var ref any = id
	var operations []operation
	ports := slices.Clone(b.Ports)
	if id == "" {
		if len(t[database]) == 0 { // a new database
			operations = append(operations, insert(database, "", map[string]any{}))
		}
		const name Named = "bridge"
		ref, has = name, &bridgeRow{name: b.Name}
		operations = append(operations, insert("Bridge", name, map[string]any{"name": b.Name}),
			mutate(database, everyRow, "bridges", "insert", Set[Named]{name}))
		own := slices.IndexFunc(ports, func(p PortConfig) bool { return p.Name == b.Name })
		if own < 0 {
			own, ports = len(ports), append(ports, PortConfig{Name: b.Name})
		}
		ports[own].Type = "internal" // ovs-vswitchd accepts no other
	}
	columns := map[string]any{}
	if b.DatapathType != "" && b.DatapathType != has.datapathType {
		columns["datapath_type"] = b.DatapathType
	}
	if b.FailMode != "" && string(b.FailMode) != optional(has.failMode) {
		columns["fail_mode"] = string(b.FailMode)
	}
	if len(b.Protocols) > 0 && !sameElements(b.Protocols, has.protocols) {
		columns["protocols"] = Set[string](slices.Compact(slices.Sorted(slices.Values(b.Protocols))))
	}
	operations = append(operations, update("Bridge", ref, columns)...)
	if b.DatapathID != 0 && !isDatapathID(has.otherConfig["datapath-id"], b.DatapathID) {
		operations = append(operations, setKeys("Bridge", ref, "other_config", map[string]string{"datapath-id": fmt.Sprintf("%016x", b.DatapathID)})...)
	}
	controllers, err := b.controllers(t, ref, has)
	if err != nil {
		return nil, err
	}
	operations = append(operations, controllers...)
	for i, p := range ports {
		more, err := p.operations(t, b.Name, ref, has, strconv.Itoa(i))
		if err != nil {
			return nil, err
		}
		operations = append(operations, more...)
	}
	var remove Set[UUID]
	for _, id := range has.ports {
		p, err := find[*portRow](t, "Port", id, "the bridge "+b.Name)
		if err != nil {
			return nil, err
		}
		if slices.Contains(b.RemovePorts, p.name) {
			remove = append(remove, id)
		}
	}
	if len(remove) > 0 {
		operations = append(operations, mutate("Bridge", whereRow(ref), "ports", "delete", remove))
	}
	return operations, nil
}

// controllers adds and removes controllers. Rows of controllers that stay are not written, because ovs-vswitchd
// would connect to them again.
func (b BridgeConfig) controllers(t tables, ref any, has *bridgeRow) (operations []operation, err error) {
	var targets []string
	var remove Set[UUID]
	for _, id := range has.controllers {
		c, err := find[*controllerRow](t, "Controller", id, "the bridge "+b.Name)
		if err != nil {
			return nil, err
		}
		targets = append(targets, c.target)
		if slices.Contains(b.RemoveControllers, c.target) {
			remove = append(remove, id)
		}
	}
	if len(remove) > 0 {
		operations = append(operations, mutate("Bridge", whereRow(ref), "controller", "delete", remove))
	}
	for i, target := range b.Controllers {
		if !slices.Contains(targets, target) {
			name := Named("controller" + strconv.Itoa(i))
			operations = append(operations, insert("Controller", name, map[string]any{"target": target}),
				mutate("Bridge", whereRow(ref), "controller", "insert", Set[Named]{name}))
		}
	}
	if id, exists := ref.(UUID); exists && len(operations) > 0 {
		// Targets need not be unique, so that two clients could add the same one.
		unchanged := operation{"op": "wait", "table": "Bridge", "where": whereRow(id), "columns": []string{"controller"},
			"until": "==", "rows": []any{map[string]any{"controller": has.controllers}}, "timeout": 0}
		operations = append([]operation{unchanged}, operations...)
	}
	return operations, nil
}

// operations returns what gives the bridge this port. suffix makes the names of new rows unique.
func (p PortConfig) operations(t tables, bridge string, ref any, has *bridgeRow, suffix string) ([]operation, error) {
	columns := map[string]any{}
	if id, port := t.portNamed(p.Name); id != "" {
		if !slices.Contains(has.ports, id) {
			return nil, fmt.Errorf("the port %s belongs to the bridge %s: remove it there first", p.Name, t.bridgeOf(id))
		}
		for _, id := range port.interfaces {
			i, err := find[*interfaceRow](t, "Interface", id, "the port "+p.Name)
			if err != nil {
				return nil, err
			}
			if i.name != p.Name {
				continue
			}
			if p.Type != "" && p.Type != i.kind {
				columns["type"] = p.Type
			}
			if p.OFPort != 0 && int64(p.OFPort) != optional(i.ofPortRequest) {
				columns["ofport_request"] = int64(p.OFPort)
			}
			missing := maps.Clone(p.Options)
			maps.DeleteFunc(missing, func(k, v string) bool { old, ok := i.options[k]; return ok && old == v })
			return append(update("Interface", id, columns), setKeys("Interface", id, "options", missing)...), nil
		}
		return nil, fmt.Errorf("the port %s is a bond, which has no interface of its name: choose another name", p.Name)
	}
	columns["name"] = p.Name
	if p.Type != "" {
		columns["type"] = p.Type
	}
	if p.OFPort != 0 {
		columns["ofport_request"] = int64(p.OFPort)
	}
	if len(p.Options) > 0 {
		columns["options"] = Map[string](p.Options)
	}
	port, iface := Named("port"+suffix), Named("interface"+suffix)
	return []operation{
		insert("Interface", iface, columns),
		insert("Port", port, map[string]any{"name": p.Name, "interfaces": Set[Named]{iface}}),
		mutate("Bridge", whereRow(ref), "ports", "insert", Set[Named]{port}),
	}, nil
}

// update writes columns of one row, and nothing if there are none.
func update(table string, ref any, columns map[string]any) []operation {
	if len(columns) == 0 {
		return nil
	}
	return []operation{{"op": "update", "table": table, "where": whereRow(ref), "row": columns}}
}

// setKeys sets keys of a map and leaves its other keys. An insert alone would leave the keys that exist.
func setKeys(table string, ref any, column string, values map[string]string) []operation {
	if len(values) == 0 {
		return nil
	}
	keys := Set[string](slices.Sorted(maps.Keys(values)))
	return []operation{
		mutate(table, whereRow(ref), column, "delete", keys),
		mutate(table, whereRow(ref), column, "insert", Map[string](values)),
	}
}

// isDatapathID reports whether a text is a datapath id, in the forms that ovs-vswitchd accepts.
func isDatapathID(text string, id uint64) bool {
	n, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 64)
	return err == nil && n == id
}

func sameElements(a, b []string) bool {
	within := func(a, b []string) bool {
		return !slices.ContainsFunc(a, func(s string) bool { return !slices.Contains(b, s) })
	}
	return within(a, b) && within(b, a)
}

// bridgeNamed returns the bridge of a name, "" if there is none.
func (t tables) bridgeNamed(name string) (UUID, *bridgeRow) {
	for id, r := range t["Bridge"] {
		if b := r.(*bridgeRow); b.name == name {
			return id, b
		}
	}
	return "", nil
}

// portNamed returns the port of a name, "" if there is none.
func (t tables) portNamed(name string) (UUID, *portRow) {
	for id, r := range t["Port"] {
		if p := r.(*portRow); p.name == name {
			return id, p
		}
	}
	return "", nil
}

// bridgeOf returns the name of the bridge that has a port.
func (t tables) bridgeOf(port UUID) string {
	for _, r := range t["Bridge"] {
		if b := r.(*bridgeRow); slices.Contains(b.ports, port) {
			return b.name
		}
	}
	return ""
}
