// Package etcd runs a member of the store as a child process.
//
// The member is a child process because an embedded etcd ends its process when its disk is full or its
// data is damaged. The controller keeps answering what it can, and restarts the child. The member
// uses TLS with certificates of the store's own certificate authority, for other members and for
// controllers alike, so that controllers connect to an external etcd in the same way.
//
// The child ends when its standard input is closed, so that it never outlives a killed parent.
package etcd
