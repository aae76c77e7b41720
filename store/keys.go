package store

import (
	"net/url"
	"strings"
)

// prefix is common to all keys of Headgate, in an etcd that may have other users.
const prefix = "/headgate/"

// Kinds of documents; each has a prefix of its own.
const (
	Tenants           = "tenants"
	Hosts             = "hosts"
	Interfaces        = "interfaces"
	Removed           = "former" // removed interfaces, whose previous group owners may still read usage records
	Collectives       = "collectives"
	Tokens            = "tokens"
	Audit             = "audit"
	IdempotentAnswers = "answers" // to idempotency keys
	Service           = "service" // the service's own state: its certificate authority, its epoch
	Probing           = "probing" // the probe schedule and its state
	Probes            = "probes"  // results of scheduled measurements
	Newest            = "newest"  // the newest result of each pair and measure
	Network           = "network" // the configuration of the network of switches
	Reservations      = "reservations"
	ReservedOf        = "reserved" // what reservations have of interfaces
)

// Key returns the key of a document by its kind and the parts of its name, such as a host's and a
// device's. Parts may contain any characters.
func Key(kind string, name ...string) string {
	return prefix + kind + "/" + join(name)
}

// Prefix returns the prefix of all documents of a kind, or of those whose names start with some parts.
func Prefix(kind string, below ...string) string {
	if len(below) == 0 {
		return prefix + kind + "/"
	}
	return Key(kind, below...) + "/"
}

// Name returns the kind of a key and the parts of its name.
func Name(key string) (kind string, name []string) {
	parts := strings.Split(strings.TrimPrefix(key, prefix), "/")
	for _, p := range parts[1:] {
		if plain, err := url.PathUnescape(p); err == nil {
			p = plain
		}
		name = append(name, p)
	}
	return parts[0], name
}

func join(parts []string) string {
	var b strings.Builder
	for i, p := range parts {
		if i > 0 {
			b.WriteByte('/')
		}
		b.WriteString(url.PathEscape(p))
	}
	return b.String()
}

// Root is the prefix of all documents.
const Root = prefix
