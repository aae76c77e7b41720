// Package ovsdb reads, follows and changes the configuration of Open vSwitch: bridges, ports, interfaces and
// controllers, in the database Open_vSwitch of an ovsdb-server. It is a client of the OVSDB protocol, JSON-RPC 1.0
// over a Unix socket, TCP or TLS (RFC 7047; ovsdb-server(7) for what the server does differently; the columns are
// those of ovs-vswitchd.conf.db(5)).
//
//   - Dial opens a Session. Session.Snapshot reads the database once, and Session.Call sends any other request.
//   - Monitor follows the database over connections of its own, and passes each new state as a whole, a Snapshot.
//   - Session.EnsureBridge makes a bridge as a BridgeConfig describes it. It writes only differences, and removes
//     only what the BridgeConfig lists for removal. Session.WaitApplied waits until ovs-vswitchd has applied them.
//
// # Departures
//
// Monitor uses the method monitor of RFC 7047, not monitor_cond or monitor_cond_since of ovsdb-server(7). An update
// of monitor has whole rows, so that no state can be wrong because a difference was applied to another row than the
// server's. Conditions would select rows, and all rows of these tables are of use. After a reconnect the whole
// database is read again, because a row that was deleted in the meantime is in no update.
//
// Columns and tables that an older database does not have (Datapath came with OVS 2.13) are left out of requests, as
// the server's schema says, and their values are zero.
//
// The server does not answer a transaction that is cancelled, as RFC 7047, section 4.1.4, says that it does (seen with
// ovsdb-server 3.1.0). Its id stays reserved until the end of the session.
//
// # Units
//
// Rates are unit.Rate, bits per second, MTUs are bytes of an Ethernet frame's payload.
//
// # Out of scope
//
// What a datapath can do with OpenFlow, such as the number and the largest rate of its meters, is not in OVSDB: it is
// in OpenFlow's replies to multipart requests (meter features, table features). Only what the columns of the table
// Datapath have is here. Statistics, mirrors, QoS, bonds, managers and certificates of the switch, other databases, and
// clustered databases, of which only one server may write, are left out.
package ovsdb
