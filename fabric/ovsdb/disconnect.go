package ovsdb

import "slices"

// disconnect plans what Disconnect does.
func disconnect(t tables, bridges []string) (*plan, error) {
	ids, err := t.find(bridges)
	if err != nil {
		return nil, err
	}
	p := &plan{}
	for _, id := range ids {
		if err := disconnectBridge(p, t, id, t["Bridge"][id].(*bridgeRow)); err != nil {
			return nil, err
		}
	}
	if len(p.operations) == 0 {
		return p, nil
	}
	for id, r := range t["Bridge"] {
		if managed(r.(*bridgeRow).externalIDs) && !slices.Contains(ids, id) {
			return p, nil // it needs what all bridges share
		}
	}
	return p, disconnectRoot(p, t)
}

func disconnectBridge(p *plan, t tables, id uuid, has *bridgeRow) error {
	was, connected, err := readBefore("the bridge "+has.name, has.externalIDs)
	if err != nil || !connected {
		return err
	}
	p.add(unchanged("Bridge", id, has, "protocols", "fail_mode", "controller", "other_config", "external_ids"))
	was.reset(p, was.bridgeSettings(), "Bridge", has.name, id, has)
	var now, after []string
	var remove setOf[uuid]
	for _, row := range has.controllers {
		r, err := find[*controllerRow](t, "Controller", row, "the bridge "+has.name)
		switch {
		case err != nil:
			return err
		case managed(r.externalIDs):
			remove = append(remove, row)
		case !r.service():
			after = append(after, r.target)
		}
		if !r.service() {
			now = append(now, r.target)
		}
	}
	// Another program may have configured one of them again since.
	was.Rows = slices.DeleteFunc(was.Rows, func(saved savedRow) bool { return hasTarget(after, saved.target()) })
	inserts, names := was.restore("Controller", "controller_"+uuidName(id)+"_")
	p.add(inserts...)
	if len(remove) > 0 {
		p.add(mutate("Bridge", whereRow(id), "controller", "delete", remove))
	}
	if len(names) > 0 {
		p.add(mutate("Bridge", whereRow(id), "controller", "insert", names))
	}
	for _, saved := range was.Rows {
		after = append(after, saved.target())
	}
	slices.Sort(now)
	slices.Sort(after)
	if !slices.Equal(now, after) {
		p.changed(has.name, "controller", now, after)
	}
	return nil
}

// disconnectRoot restores what all bridges share.
func disconnectRoot(p *plan, t tables) error {
	id, root := t.rootRow()
	was, connected, err := readBefore("the table "+database, root.externalIDs)
	if err != nil || !connected {
		return err
	}
	p.add(unchanged(database, id, root, "ssl", "other_config", "external_ids"))
	was.reset(p, rootSettings, database, "", id, root)
	for _, row := range root.ssl {
		r, err := find[*sslRow](t, "SSL", row, "the table "+database)
		if err != nil {
			return err
		}
		if !managed(r.externalIDs) {
			return nil // another client has configured it since
		}
		inserts, names := was.restore("SSL", "ssl")
		p.add(inserts...)
		p.add(update(database, id, map[string]any{"ssl": names})...)
		p.changed("", "ssl", r.files().list(), was.ssl())
	}
	return nil
}
