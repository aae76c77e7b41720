package remote

import (
	"fmt"

	"headgate.dev/headgate/api/agents"
)

// maxDocuments is the size of the documents that a controller sends before a desired state, in bytes: more than twice what a controller permits a host
// (api/server.maxHostBytes).
const maxDocuments = 64 << 20

// documents are documents of interfaces that have arrived before the desired state that they are of. The zero value has none.
type documents struct {
	of    map[string]*agents.Interface
	bytes int
}

// add keeps a document until the next desired state.
func (d *documents) add(i *agents.Interface) error {
	if d.bytes += len(i.Document); d.bytes > maxDocuments {
		return fmt.Errorf("the documents of the controller have more than %d bytes", maxDocuments)
	}
	if d.of == nil {
		d.of = map[string]*agents.Interface{}
	}
	d.of[i.Dev] = i
	return nil
}

// putInto sets the documents of a desired state that have arrived before it, and forgets all.
func (d *documents) putInto(s *agents.Desired) {
	for _, i := range s.Interfaces {
		if have := d.of[i.Dev]; len(i.Document) == 0 && have != nil && have.Revision == i.Revision {
			i.Document = have.Document
		}
	}
	*d = documents{}
}
