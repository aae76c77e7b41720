package intent

import (
	"fmt"
	"maps"
	"slices"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
)

// Origin is the kind of a source, as the agent reports it (agents.Device.Owner) and messages name it.
type Origin string

// The origins.
const (
	Local      Origin = "local"      // a file of the host
	Controller Origin = "controller" // a controller of the service
)

// Document is the desired state of a device, or of the devices that match a pattern.
type Document struct {
	config.Interface
	Origin Origin
	// Connections are assigned to groups at run time.
	Connections []shaper.Assignment
}

// Source has the documents of one source.
type Source struct {
	Documents []Document
	// Errors are the documents that cannot be parsed, by device or pattern. The source may have an
	// earlier revision of such a document in Documents.
	Errors map[string]error
}

// Problem is a document that has no effect, or whose earlier revision has effect instead.
type Problem struct {
	Dev string // device or pattern, as the document names it
	Err error
}

// Merged is the desired state from all sources.
type Merged struct {
	// Documents are in order of precedence.
	Documents []Document
	// Problems are at most one for each device or pattern of a source, in order of the sources.
	Problems []Problem
	// Unparsable are the devices and patterns of documents that cannot be parsed, and of which there is
	// no earlier revision.
	Unparsable []string
}

// Interfaces returns the documents for the agent.
func (m Merged) Interfaces() []config.Interface {
	out := make([]config.Interface, len(m.Documents))
	for n, d := range m.Documents {
		out[n] = d.Interface
	}
	return out
}

// For returns the document that configures a device, by the device's kernel name.
func (m Merged) For(names group.AltNames, kernel string) (Document, bool) {
	if n := names.Of(kernel, devices(m.Documents)); n >= 0 {
		return m.Documents[n], true
	}
	return Document{}, false
}

// Connections returns the connections that the document of a device or pattern assigns.
func (m Merged) Connections(dev string) []shaper.Assignment {
	if n := slices.Index(devices(m.Documents), dev); n >= 0 {
		return m.Documents[n].Connections
	}
	return nil
}

// Merge merges sources, which are in order of precedence, on a machine whose devices have these
// alternative names. It keeps all documents of files: config.Set.WithAltNames reports two that name the
// same device differently, with their positions.
func Merge(names group.AltNames, sources ...Source) (m Merged) {
	for _, s := range sources {
		problems := maps.Clone(s.Errors)
		if problems == nil {
			problems = map[string]error{}
		}
		own := devices(s.Documents)
		for dev := range s.Errors {
			if !slices.Contains(own, dev) {
				m.Unparsable = append(m.Unparsable, dev)
			}
		}
		earlier := m.Documents
		for n, d := range s.Documents {
			if err := conflict(names, earlier, own, n, d); err != nil {
				problems[d.Dev] = err
				continue
			}
			m.Documents = append(m.Documents, d)
		}
		for _, dev := range slices.Sorted(maps.Keys(problems)) {
			m.Problems = append(m.Problems, Problem{dev, problems[dev]})
		}
	}
	slices.Sort(m.Unparsable)
	return m
}

// conflict returns why the document own[n] has no effect: another document configures its device.
func conflict(names group.AltNames, earlier []Document, own []string, n int, d Document) error {
	kernel := names.Kernel(d.Dev)
	// An earlier pattern takes precedence over a later document that names the device.
	if i := names.Of(kernel, devices(earlier)); i >= 0 && (earlier[i].Dev == d.Dev || !group.IsPattern(d.Dev)) {
		by := "the " + string(earlier[i].Origin)
		if earlier[i].Origin == Local {
			by = "a local file of the host"
		}
		return fmt.Errorf("%s configures the device (%s) and takes precedence", by, earlier[i].WrittenDev())
	}
	if d.Origin == Local || group.IsPattern(d.Dev) {
		return nil
	}
	if i := names.Of(kernel, own); i != n {
		return fmt.Errorf("the device has another document under the name %s, which takes precedence", own[i])
	}
	return nil
}

func devices(documents []Document) []string {
	out := make([]string, len(documents))
	for n, d := range documents {
		out[n] = d.Dev
	}
	return out
}
