package store

import (
	"net/url"
	"strings"
)

// prefix is of all that is ours in an etcd that may have other users.
const prefix = "/headgate/"

// Kinds of documents; each has a prefix of its own.
const (
	Tenants     = "tenants"
	Hosts       = "hosts"
	Interfaces  = "interfaces"
	Former      = "former" // interfaces that were given back: whose their groups were is of the past
	Collectives = "collectives"
	Tokens      = "tokens"
	Audit       = "audit"
	Answers     = "answers" // to idempotency keys
	Service     = "service" // of the service itself: its authority, its epoch
	Probing     = "probing" // the schedule of measurements, and what is known of it
	Probes      = "probes"  // what was measured by it
	Newest      = "newest"  // the newest of that, of each pair and measure
)

// Key is of the document of a kind and a name, which may have parts: a host's and a device's.
// Parts may have any letters.
func Key(kind string, name ...string) string {
	return prefix + kind + "/" + join(name)
}

// Prefix is of all documents of a kind, below some parts of their names.
func Prefix(kind string, below ...string) string {
	if len(below) == 0 {
		return prefix + kind + "/"
	}
	return Key(kind, below...) + "/"
}

// Name is a key's kind and the parts of its name.
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
