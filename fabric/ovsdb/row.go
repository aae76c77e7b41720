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
	"SSL":        func() row { return new(sslRow) },
	"Datapath":   func() row { return new(datapathRow) },
}

type rootRow struct {
	ovsVersion               setOf[string]
	nextCfg, curCfg          int64
	bridges, ssl             setOf[uuid]
	datapaths                mapOf[uuid]
	otherConfig, externalIDs mapOf[string]
}

func (r *rootRow) columns() []column {
	return []column{{"ovs_version", &r.ovsVersion}, {"next_cfg", &r.nextCfg}, {"cur_cfg", &r.curCfg},
		{"bridges", &r.bridges}, {"ssl", &r.ssl}, {"datapaths", &r.datapaths},
		{"other_config", &r.otherConfig}, {"external_ids", &r.externalIDs}}
}

type bridgeRow struct {
	name, datapathType string
	datapathID         setOf[string]
	failMode           setOf[string]
	protocols          setOf[string]
	controllers, ports setOf[uuid]
	stp, rstp          bool

	otherConfig, externalIDs mapOf[string]
}

func (r *bridgeRow) columns() []column {
	return []column{{"name", &r.name}, {"datapath_type", &r.datapathType}, {"datapath_id", &r.datapathID},
		{"fail_mode", &r.failMode}, {"protocols", &r.protocols}, {"controller", &r.controllers}, {"ports", &r.ports},
		{"stp_enable", &r.stp}, {"rstp_enable", &r.rstp}, {"other_config", &r.otherConfig}, {"external_ids", &r.externalIDs}}
}

type portRow struct {
	name       string
	interfaces setOf[uuid]
}

func (r *portRow) columns() []column {
	return []column{{"name", &r.name}, {"interfaces", &r.interfaces}}
}

type interfaceRow struct {
	name, kind            string
	ofPort                setOf[int64]
	mac                   setOf[string]
	linkState, adminState setOf[string]
	linkSpeed, mtu        setOf[int64]
	err                   setOf[string]
}

func (r *interfaceRow) columns() []column {
	return []column{{"name", &r.name}, {"type", &r.kind}, {"ofport", &r.ofPort}, {"mac_in_use", &r.mac}, {"link_state", &r.linkState},
		{"admin_state", &r.adminState}, {"link_speed", &r.linkSpeed}, {"mtu", &r.mtu}, {"error", &r.err}}
}

type controllerRow struct {
	target               string
	connected            bool
	kind, role           setOf[string]
	mode                 setOf[string]
	backoff              setOf[int64]
	status               mapOf[string]
	externalIDs          mapOf[string]
	inactivity           setOf[int64]
	async                setOf[bool]
	queue, rate, burst   setOf[int64]
	local, mask, gateway setOf[string]
	otherConfig          mapOf[string]
}

func (r *controllerRow) columns() []column {
	return append(r.configuration(), column{"is_connected", &r.connected}, column{"role", &r.role}, column{"status", &r.status})
}

// configuration returns the columns that a client writes.
func (r *controllerRow) configuration() []column {
	return []column{{"target", &r.target}, {"type", &r.kind}, {"connection_mode", &r.mode}, {"max_backoff", &r.backoff},
		{"inactivity_probe", &r.inactivity}, {"enable_async_messages", &r.async}, {"controller_queue_size", &r.queue},
		{"controller_rate_limit", &r.rate}, {"controller_burst_limit", &r.burst}, {"local_ip", &r.local},
		{"local_netmask", &r.mask}, {"local_gateway", &r.gateway}, {"other_config", &r.otherConfig}, {"external_ids", &r.externalIDs}}
}

type sslRow struct {
	key, certificate, ca string
	bootstrap            bool
	externalIDs          mapOf[string]
}

func (r *sslRow) columns() []column {
	return []column{{"private_key", &r.key}, {"certificate", &r.certificate}, {"ca_cert", &r.ca},
		{"bootstrap_ca_cert", &r.bootstrap}, {"external_ids", &r.externalIDs}}
}

type datapathRow struct {
	version      string
	capabilities mapOf[string]
}

func (r *datapathRow) columns() []column {
	return []column{{"datapath_version", &r.version}, {"capabilities", &r.capabilities}}
}

// optional returns the value of a column of at most one value, and the zero value if it is empty.
func optional[T comparable](s setOf[T]) (v T) {
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
	if err := s.call(ctx, "get_schema", &has, database); err != nil {
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
func decodeRow(table string, id uuid, requested []string, from map[string]json.RawMessage) (row, error) {
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
			return nil, fmt.Errorf("cannot decode the column %s of the table %s, row %s: %w", c.name, table, id, err)
		}
	}
	return r, nil
}

// tables are the rows of a database by table and UUID.
type tables map[string]map[uuid]row

// selects are the operations that read the columns, in the order of the tables' names.
func (s schema) selects() (operations []operation) {
	for _, table := range slices.Sorted(maps.Keys(s)) {
		operations = append(operations, operation{"op": "select", "table": table, "where": everyRow,
			"columns": append([]string{"_uuid"}, s[table]...)})
	}
	return operations
}

// decode decodes the results of selects.
func (s schema) decode(results []result) (tables, error) {
	t := tables{}
	for i, table := range slices.Sorted(maps.Keys(s)) {
		t[table] = map[uuid]row{}
		for _, columns := range results[i].Rows {
			var id uuid
			if err := json.Unmarshal(columns["_uuid"], &id); err != nil {
				return nil, fmt.Errorf("cannot decode the column _uuid of the table %s: %w", table, err)
			}
			r, err := decodeRow(table, id, s[table], columns)
			if err != nil {
				return nil, err
			}
			t[table][id] = r
		}
	}
	return t, nil
}

// find returns the row that a row refers to.
func find[R row](t tables, table string, id uuid, from string) (R, error) {
	r, ok := t[table][id].(R)
	if !ok {
		return r, fmt.Errorf("%s refers to the row %s of the table %s, which the server did not send", from, id, table)
	}
	return r, nil
}

// root returns the row of the table Open_vSwitch, which has at most one, or an empty one.
func (t tables) root() *rootRow {
	_, r := t.rootRow()
	return r
}

// rootRow returns the row of the table Open_vSwitch and its UUID, which is "" if there is none.
func (t tables) rootRow() (uuid, *rootRow) {
	for _, id := range slices.Sorted(maps.Keys(t[database])) {
		return id, t[database][id].(*rootRow)
	}
	return "", new(rootRow)
}
