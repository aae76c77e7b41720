// Package etcd runs a member of the store as a child of this program.
//
// It is a child because an embedded etcd ends its process when its disk is full or its data is
// damaged: the API goes on answering what it can, and the child is started again. It speaks TLS
// with certificates of an authority of the store's own, to other members and to controllers
// alike, so that an etcd of somebody else's is spoken to in the same way.
//
// The child ends when its standard input does, so that it never outlives a parent that was
// killed.
package etcd
