package remote

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/collective"
	"headgate.dev/headgate/config"
)

// DesiredState is the desired state of this host, as stored on disk.
type DesiredState struct {
	dir string

	mu   sync.Mutex
	text desiredContent
}

// desiredContent is the content of the file.
type desiredContent struct {
	// Controller is the hash of the certificate authority of the controllers that sent the state.
	Controller string              `json:"service,omitempty"`
	Epoch      uint64              `json:"epoch"`
	Revision   int64               `json:"revision"`
	Interfaces map[string]document `json:"interfaces"`
	// Collectives are the documents of connection sets, by name.
	Collectives map[string]string `json:"collectives,omitempty"`
	// LastValid has, for each document in Collectives that this version cannot parse, the last one that
	// it could.
	LastValid map[string]string `json:"sound,omitempty"`
}

type document struct {
	Revision int64           `json:"revision"`
	Document json.RawMessage `json:"document"`
	// LastValid is the last document that this version could parse, if this one cannot be parsed.
	LastValid *document `json:"sound,omitempty"`
}

// parse parses the document.
func (d *document) parse() (w Interface, err error) {
	var doc agents.InterfaceDocument
	if err := json.Unmarshal(d.Document, &doc); err != nil {
		return w, err
	}
	resolved, problems := doc.Resolve()
	if len(problems) > 0 {
		return w, problems[0]
	}
	return Interface{config.Interface{Resolved: resolved, File: Source, Revision: d.Revision}, doc.Connections}, nil
}

// lastValid returns the document itself if it can be parsed, or the last one that could; nil if there
// is none.
func (d *document) lastValid() *document {
	if _, err := d.parse(); err != nil {
		return d.LastValid
	}
	return &document{Revision: d.Revision, Document: d.Document}
}

// policy parses the document of a connection set.
func policy(name, text string) (p collective.Policy, err error) {
	set, err := config.Parse(name, []byte(text))
	if err != nil {
		return p, err
	}
	if len(set.Collectives) != 1 {
		return p, errors.New("the document is not exactly one connection set")
	}
	return set.Collectives[0].Policy, nil
}

const desiredFile = "intent.json"

// OpenIntent reads the desired state from a directory. If it is damaged the controllers send it again, and local files are in force meanwhile. A document that cannot be
// parsed, without one before that could, is sent again as well: it may be damaged.
func OpenIntent(dir string) (*DesiredState, error) {
	i := &DesiredState{dir: dir}
	err := readFile(filepath.Join(dir, desiredFile), &i.text)
	if errors.Is(err, errDamaged) {
		slog.Error("desired state of the controllers is lost until they send it again", "error", err)
		err = nil
	}
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if i.text.Interfaces == nil {
		i.text.Interfaces = map[string]document{}
	}
	for dev, d := range i.text.Interfaces {
		if d.lastValid() == nil {
			d.Revision = 0
			i.text.Interfaces[dev] = d
		}
	}
	return i, err
}

// ErrStale means that a controller sent a state that is older than the stored one.
var ErrStale = errors.New("the controller's desired state is out of date")

// errNotStored means that the desired state could not be written to disk, and so is not applied.
var errNotStored = errors.New("cannot write the desired state")

// Store stores a controller's desired state; changed reports whether it differs from the stored one.
func (i *DesiredState) Store(d *agents.Desired) (changed bool, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	epoch, revision := d.Fence.GetEpoch(), d.Fence.GetRevision()
	if epoch < i.text.Epoch || epoch == i.text.Epoch && revision < i.text.Revision {
		return false, fmt.Errorf("%w: received epoch/revision %d/%d, have %d/%d", ErrStale, epoch, revision, i.text.Epoch, i.text.Revision)
	}
	next := desiredContent{Controller: i.text.Controller, Epoch: epoch, Revision: revision, Interfaces: map[string]document{}, Collectives: map[string]string{}, LastValid: map[string]string{}}
	for _, one := range d.Interfaces {
		have, there := i.text.Interfaces[one.Dev]
		switch {
		case len(one.Document) > 0:
			changed = changed || !there || have.Revision != one.Revision
			fresh := document{Revision: one.Revision, Document: json.RawMessage(one.Document)}
			if there && fresh.lastValid() == nil {
				fresh.LastValid = have.lastValid()
			}
			next.Interfaces[one.Dev] = fresh
		case there && have.Revision == one.Revision:
			next.Interfaces[one.Dev] = have
		default:
			return false, fmt.Errorf("missing document of %s at revision %d", one.Dev, one.Revision)
		}
	}
	for _, c := range d.Collectives {
		have, there := i.text.Collectives[c.Name]
		changed = changed || have != c.Text
		next.Collectives[c.Name] = c.Text
		if _, err := policy(c.Name, c.Text); err == nil || !there {
			continue
		}
		if _, err := policy(c.Name, have); err == nil {
			next.LastValid[c.Name] = have
		} else if sound, ok := i.text.LastValid[c.Name]; ok {
			next.LastValid[c.Name] = sound
		}
	}
	changed = changed || len(next.Interfaces) != len(i.text.Interfaces) || len(next.Collectives) != len(i.text.Collectives)
	if err := writeFile(filepath.Join(i.dir, desiredFile), next); err != nil {
		return false, fmt.Errorf("%w: %w", errNotStored, err)
	}
	i.text = next
	return changed, nil
}

// setAuthority sets, by the hash of their certificate authority, the controllers whose state is accepted
// from now on. The state of other controllers stays until the new ones send one, but its epoch and
// revisions are reset: they cannot be compared with those of the new controllers.
func (i *DesiredState) setAuthority(authority string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.text.Controller != "" && i.text.Controller != authority { // an agent of an earlier version stored ""
		i.text.Epoch, i.text.Revision = 0, 0
		for dev, d := range i.text.Interfaces {
			d.Revision = 0
			i.text.Interfaces[dev] = d
		}
	}
	i.text.Controller = authority
}

// Fence returns the epoch and revision of the stored state.
func (i *DesiredState) Fence() *agents.Fence {
	i.mu.Lock()
	defer i.mu.Unlock()
	return &agents.Fence{Epoch: i.text.Epoch, Revision: i.text.Revision}
}

// Revisions returns the revisions of the stored documents, by device.
func (i *DesiredState) Revisions() map[string]int64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	out := map[string]int64{}
	for dev, d := range i.text.Interfaces {
		if d.Revision > 0 { // 0 is a document of other controllers
			out[dev] = d.Revision
		}
	}
	return out
}

// Interfaces returns the documents, in the order of their devices. A document that this version
// cannot parse is reported, and the last one that it could parse is used instead: unknown fields of
// a newer controller remove nothing.
func (i *DesiredState) Interfaces() (out []Interface, errs map[string]error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	errs = map[string]error{}
	for dev, d := range i.text.Interfaces {
		w, err := d.parse()
		if err != nil {
			why := err
			if d.LastValid != nil { // another version may have stored it, so this one may not parse it
				w, err = d.LastValid.parse()
			}
			errs[dev] = parseError(why, err == nil)
			if err != nil {
				continue
			}
		}
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b Interface) int { return cmp.Compare(a.Dev, b.Dev) })
	return out, errs
}

// Collectives returns the connection sets, in order (config.SortPolicies). Documents that cannot be
// parsed are treated as in Interfaces.
func (i *DesiredState) Collectives() (out []collective.Policy, errs map[string]error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	errs = map[string]error{}
	for name, text := range i.text.Collectives {
		p, err := policy(name, text)
		if err != nil {
			why := err
			if sound, ok := i.text.LastValid[name]; ok {
				p, err = policy(name, sound)
			}
			errs[name] = parseError(why, err == nil)
			if err != nil {
				continue
			}
		}
		out = append(out, p)
	}
	config.SortPolicies(out)
	return out, errs
}

// parseError returns the error for a document that this version cannot parse.
func parseError(err error, sound bool) error {
	if sound {
		return fmt.Errorf("this version of the agent cannot parse the new document and keeps the previous one: upgrade the agent if the controller is newer: %w", err)
	}
	return fmt.Errorf("this version of the agent cannot parse the document: upgrade the agent if the controller is newer: %w", err)
}

// Source is the file name of interfaces that the controller configures.
const Source = "controller"

// Interface is an interface with the connections that are assigned to its groups.
type Interface struct {
	config.Interface
	Connections map[string]agents.Assignment
}
