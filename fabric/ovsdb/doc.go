// Package ovsdb reads the configuration of Open vSwitch and connects its bridges to controllers: bridges, ports,
// interfaces and controllers, in the database Open_vSwitch of an ovsdb-server. It is a client of the OVSDB protocol,
// JSON-RPC 1.0 over a Unix socket, TCP or TLS (RFC 7047; ovsdb-server(7) for what the server does differently; the
// columns are those of ovs-vswitchd.conf.db(5)).
//
//   - Dial opens a Session. Session.Snapshot reads the whole state in one transaction.
//   - Session.Connect makes bridges ready for the controllers of Headgate, and Session.Disconnect restores what they had.
//   - Session.Running reports whether an ovs-vswitchd serves the database. Session.WaitApplied waits until it has applied
//     a change, and Session.WaitConnected until bridges are connected to their controllers.
//
// # Departures
//
// Connect keeps what it changes in external_ids of the bridge and of the table Open_vSwitch, as JSON under the key
// headgate-before, so that it is in the database's backups and gone with the bridge. A value that another client has
// changed since stays as it is.
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
// The package does not create or delete bridges and ports: an operator, a hypervisor or a container engine does, with
// tools of their own such as ovs-vsctl.
//
// It does not follow the database with the methods monitor of RFC 7047 and monitor_cond of ovsdb-server(7). The controller
// learns of ports and links by OpenFlow (port status). Only WaitConnected waits for a change that another client makes.
// ovs-vswitchd writes is_connected every 5 s, so that updates would shorten this wait by at most 0.2 s.
//
// What a datapath can do with OpenFlow, such as the number and the largest rate of its meters, is not in OVSDB: it is
// in OpenFlow's replies to multipart requests (meter features, table features). Only what the columns of the table
// Datapath have is here. Statistics, mirrors, QoS, bonds, managers, other databases, and clustered databases, of which only
// one server may write, are left out.
package ovsdb
