// Package store stores the configuration of tenants and operators in etcd, durably and for all
// controllers.
//
// A document is a key with a JSON value. An interface with all its groups and connections is one
// document (docs/decisions, 20). Changes go through Do, which takes a function over a Tx. The
// function reads documents and then either returns an error or writes documents. It is called again
// if another client changed meanwhile what it read. Requests with the same ledger wait in a queue and
// are processed in order, several in one etcd transaction. A rejected request goes through the same
// transaction as an accepted one, so that the documents it read were current.
//
// State that changes by itself, such as counters and heartbeats, is not stored here.
package store
