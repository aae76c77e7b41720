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
	all   []*agents.Interface
	bytes int
}

// add keeps a document until the next desired state.
func (d *documents) add(i *agents.Interface) error {
	if d.bytes += len(i.Document); d.bytes > maxDocuments {
		return fmt.Errorf("the documents of the controller have more than %d bytes", maxDocuments)
	}
	d.all = append(d.all, i)
	return nil
}
