package service

import (
	"slices"
	"strings"
	"sync"

	"headgate.dev/headgate/agent/intent"
	"headgate.dev/headgate/agent/remote"
	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/collective"
	"headgate.dev/headgate/config"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
)

// desiredState is the desired state of the host: the local files as last loaded, merged with the
// controllers' documents.
type desiredState struct {
	files    func() (config.Set, error)
	stored   *remote.DesiredState // by the controllers
	altNames func() group.AltNames
	// sets is called with the controllers' connection sets, and the errors of those that cannot be parsed.
	sets func([]collective.Policy, map[string]error)

	mu     sync.Mutex
	local  config.Set    // the local files as last loaded
	fence  *agents.Fence // of the controllers' documents that were merged last
	merged intent.Merged
}

// load reads the local files and returns the merged desired state.
func (d *desiredState) load() (config.Set, error) {
	local, err := d.files()
	if err != nil {
		return local, err
	}
	d.mu.Lock()
	d.local = local
	d.mu.Unlock()
	return d.latest(), nil
}

// latest returns the merged desired state. The files are not read again: a file that is being edited
// takes effect at the next reload, and an error in it does not delay the controllers' changes.
func (d *desiredState) latest() config.Set {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fence = d.stored.Fence()
	d.sets(d.stored.Collectives())
	d.merged = intent.Merge(d.altNames(), localSource(d.local), controllerSource(d.stored.Interfaces()))
	set := d.local
	set.Interfaces = d.merged.Interfaces()
	return set
}

func localSource(set config.Set) (s intent.Source) {
	for _, i := range set.Interfaces {
		s.Documents = append(s.Documents, intent.Document{Interface: i, Origin: intent.Local})
	}
	return s
}

func controllerSource(documents []remote.Interface, errors map[string]error) intent.Source {
	s := intent.Source{Errors: errors}
	for _, w := range documents {
		d := intent.Document{Interface: w.Interface, Origin: intent.Controller}
		for name, c := range w.Connections {
			if proto, a, b, err := group.ParseConn(name); err == nil {
				d.Connections = append(d.Connections, shaper.Assignment{Conn: shaper.Conn{Proto: proto, A: a, B: b}, Group: c.Group})
			}
		}
		slices.SortFunc(d.Connections, func(a, b shaper.Assignment) int { return strings.Compare(a.Conn.String(), b.Conn.String()) })
		s.Documents = append(s.Documents, d)
	}
	return s
}

// origin returns the origin of the document that configures a device, by the device's kernel name; ""
// if there is none.
func (d *desiredState) origin(names group.AltNames, dev string) intent.Origin {
	d.mu.Lock()
	defer d.mu.Unlock()
	document, _ := d.merged.For(names, dev)
	return document.Origin
}

// unparsable returns the documents that this version cannot parse.
func (d *desiredState) unparsable() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.merged.Unparsable
}

// connections returns the connections that a document assigns.
func (d *desiredState) connections(dev string) []shaper.Assignment {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.merged.Connections(dev)
}

// addProblems adds the problems of documents to those of devices. It returns which state of the
// controllers was merged.
func (d *desiredState) addProblems(errs map[string]string) *agents.Fence {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.merged.Problems {
		text := p.Err.Error()
		if other := errs[p.Dev]; other != "" {
			text = other + "; " + text
		}
		errs[p.Dev] = text
	}
	return d.fence
}
