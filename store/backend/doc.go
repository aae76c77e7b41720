// Package backend opens the store of a controller, and keeps its data safe. A store is the
// controller's own member of an etcd, which Run runs as a child process, or an External etcd.
//
// The data directory of a controller has, of this package:
//
//	store/               the own member: its data and certificates (package etcd)
//	etcd-position.json   the last seen position of an external etcd
//	lock                 locked by the process, with its lease as a candidate for the leader
//
// Hosts reject a state that is older than what they have seen. So a restore begins a new epoch, and a
// controller does not start, and stops, if its external etcd is at an earlier position than before.
//
// The package does not know what is stored: package store does. It reads no flags, and its errors
// do not name the flags to correct: the caller adds the remedy.
package backend
