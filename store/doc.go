// Package store keeps what tenants and operators want, durably and for all controllers: etcd,
// and what the service needs of it.
//
// A document is a key whose value is JSON; an interface with all groups and connections on it is
// one (docs/decisions, 20). Changes go through Do: functions over a Tx that read documents,
// refuse or write, and are called again if somebody else changed meanwhile what they read. Those
// of one ledger wait in a queue and are decided together, one after the other, in one
// transaction. A refusal is as final as a change: what was read was so when the transaction took
// place.
//
// Nothing that changes by itself is written here: no counters, no states, no heartbeats.
package store
