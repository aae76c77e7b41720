package ovsdb

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// database is the name of Open vSwitch's database, and of the table of its one root row.
const database = "Open_vSwitch"

// row is a row of a table. Its columns are those that are requested from the server.
type row interface{ columns() []column }

// column is a column by name, and a pointer to the field that it is decoded into.
type column struct {
	name string
	into any
}

// newRow makes a row of each table that is read.
var newRow = map[string]func() row{
	database:     func() row { return new(rootRow) },
	"Bridge":     func() row { return new(bridgeRow) },
	"Port":       func() row { return new(portRow) },
	"Interface":  func() row { return new(interfaceRow) },
	"Controller": func() row { return new(controllerRow) },
	"Datapath":   func() row { return new(datapathRow) },
}

type rootRow struct {
	ovsVersion      Set[string]
	nextCfg, curCfg int64
	bridges         Set[UUID]
	datapaths       Map[UUID]
}

func (r *rootRow) columns() []column {
	return []column{{"ovs_version", &r.ovsVersion}, {"next_cfg", &r.nextCfg}, {"cur_cfg", &r.curCfg},
		{"bridges", &r.bridges}, {"datapaths", &r.datapaths}}
}

type bridgeRow struct {
	name, datapathType string
	datapathID         Set[string]
	failMode           Set[string]
	protocols          Set[string]
	controllers, ports Set[UUID]
	otherConfig        Map[string]
}

func (r *bridgeRow) columns() []column {
	return []column{{"name", &r.name}, {"datapath_type", &r.datapathType}, {"datapath_id", &r.datapathID},
		{"fail_mode", &r.failMode}, {"protocols", &r.protocols}, {"controller", &r.controllers}, {"ports", &r.ports},
		{"other_config", &r.otherConfig}}
}

type portRow struct {
	name       string
	interfaces Set[UUID]
}

func (r *portRow) columns() []column {
	return []column{{"name", &r.name}, {"interfaces", &r.interfaces}}
}

type interfaceRow struct {
	name, kind            string
	options               Map[string]
	ofPort, ofPortRequest Set[int64]
	mac                   Set[string]
	linkState, adminState Set[string]
	linkSpeed, mtu        Set[int64]
	err                   Set[string]
}

func (r *interfaceRow) columns() []column {
	return []column{{"name", &r.name}, {"type", &r.kind}, {"options", &r.options}, {"ofport", &r.ofPort},
		{"ofport_request", &r.ofPortRequest}, {"mac_in_use", &r.mac}, {"link_state", &r.linkState},
		{"admin_state", &r.adminState}, {"link_speed", &r.linkSpeed}, {"mtu", &r.mtu}, {"error", &r.err}}
}

type controllerRow struct {
	target    string
	connected bool
	role      Set[string]
}

func (r *controllerRow) columns() []column {
	return []column{{"target", &r.target}, {"is_connected", &r.connected}, {"role", &r.role}}
}

type datapathRow struct {
	version      string
	capabilities Map[string]
}

func (r *datapathRow) columns() []column {
	return []column{{"datapath_version", &r.version}, {"capabilities", &r.capabilities}}
}

// optional returns the value of a column of at most one value, and the zero value if it is empty.
func optional[T comparable](s Set[T]) (v T) {
	if len(s) > 0 {
		v = s[0]
	}
	return v
}

// schema has the columns to read of each table: those of newRow that the server has.
type schema map[string][]string

// readSchema gets the server's schema (RFC 7047, section 4.1.2), once for a session.
func (s *Session) readSchema(ctx context.Context) (schema, error) {
	s.mu.Lock()
	known := s.schema
	s.mu.Unlock()
	if known != nil {
		return known, nil
	}
	var has struct {
		Tables map[string]struct {
			Columns map[string]json.RawMessage `json:"columns"`
		} `json:"tables"`
	}
	if err := s.Call(ctx, "get_schema", &has, database); err != nil {
		return nil, err
	}
	known = schema{}
	for table, empty := range newRow {
		t, ok := has.Tables[table]
		if !ok && table != "Datapath" {
			return nil, fmt.Errorf("the database %s of the OVSDB server %s has no table %s", database, s.address, table)
		}
		for _, c := range empty().columns() {
			if _, ok := t.Columns[c.name]; ok {
				known[table] = append(known[table], c.name)
			}
		}
	}
	s.mu.Lock()
	s.schema = known
	s.mu.Unlock()
	return known, nil
}

// decodeRow decodes a row of a table from its columns. Each of the requested columns must be present.
func decodeRow(table, id string, requested []string, from map[string]json.RawMessage) (row, error) {
	r := newRow[table]()
	for _, c := range r.columns() {
		if !slices.Contains(requested, c.name) {
			continue
		}
		text, err := from[c.name], error(nil)
		if isNull(text) {
			err = fmt.Errorf("it has no value")
		} else {
			err = json.Unmarshal(text, c.into)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot decode the column %s of the table %s, row %.40s: %w", c.name, table, id, err)
		}
	}
	return r, nil
}

// tables are the rows of a database by table and UUID.
type tables map[string]map[UUID]row

// put decodes a row and stores it.
func (t tables) put(table, id string, requested []string, from map[string]json.RawMessage) error {
	uuid, err := parseUUID(id)
	if err != nil {
		return fmt.Errorf("cannot decode a row of the table %s: %w", table, err)
	}
	r, err := decodeRow(table, id, requested, from)
	if err != nil {
		return err
	}
	if t[table] == nil {
		t[table] = map[UUID]row{}
	}
	t[table][uuid] = r
	return nil
}

// apply applies <table-updates>: the reply to a monitor request, or an update (RFC 7047, sections 4.1.5 and 4.1.6).
func (t tables) apply(text json.RawMessage, requested schema) error {
	var updates map[string]map[string]struct {
		New map[string]json.RawMessage `json:"new"`
	}
	if err := json.Unmarshal(text, &updates); err != nil {
		return fmt.Errorf("the server sent an update of another form: %w", err)
	}
	for table, rows := range updates {
		if requested[table] == nil {
			return fmt.Errorf("the server sent an update of the table %.60q, which was not requested", table)
		}
		for id, change := range rows {
			if change.New == nil { // the row was deleted
				delete(t[table], UUID(id))
			} else if err := t.put(table, id, requested[table], change.New); err != nil {
				return err
			}
		}
	}
	return nil
}

// find returns the row that a row refers to.
func find[R row](t tables, table string, id UUID, from string) (R, error) {
	r, ok := t[table][id].(R)
	if !ok {
		return r, fmt.Errorf("%s refers to the row %s of the table %s, which the server did not send", from, id, table)
	}
	return r, nil
}

// root returns the row of the table Open_vSwitch, which has at most one, or an empty one.
func (t tables) root() *rootRow {
	for _, id := range slices.Sorted(maps.Keys(t[database])) {
		return t[database][id].(*rootRow)
	}
	return new(rootRow)
}
