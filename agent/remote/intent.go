package remote

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"headgate/api/agents"
	"headgate/collective"
	"headgate/config"
	"headgate/store"
)

// Intent is what the controllers want of this host, as it is on its disk.
type Intent struct {
	dir string

	mu   sync.Mutex
	text intentText
}

// intentText is what is in the file.
type intentText struct {
	// Service is the hash of the authority of whoever said it.
	Service    string              `json:"service,omitempty"`
	Epoch      uint64              `json:"epoch"`
	Revision   int64               `json:"revision"`
	Interfaces map[string]document `json:"interfaces"`
	// Collectives are documents of files, by name.
	Collectives map[string]string `json:"collectives,omitempty"`
	// Sound are the last of those in Collectives that are of no use to this version, which were.
	Sound map[string]string `json:"sound,omitempty"`
}

type document struct {
	Revision int64           `json:"revision"`
	Document json.RawMessage `json:"document"`
	// Sound is the last document that was of use to this version, if this one is not.
	Sound *document `json:"sound,omitempty"`
}

// wanted is what the document says.
func (d *document) wanted() (w Wanted, err error) {
	var doc store.Interface
	if err := json.Unmarshal(d.Document, &doc); err != nil {
		return w, err
	}
	resolved, problems := doc.Resolve()
	if len(problems) > 0 {
		return w, problems[0]
	}
	return Wanted{config.Interface{Resolved: resolved, File: Source, Line: int(d.Revision)}, doc.Connections}, nil
}

// sound is the document itself if it is of use, or the last one that was; nil if there is none.
func (d *document) sound() *document {
	if _, err := d.wanted(); err != nil {
		return d.Sound
	}
	return &document{Revision: d.Revision, Document: d.Document}
}

// policy is what the document of a set says.
func policy(name, text string) (p collective.Policy, err error) {
	set, err := config.Parse(name, []byte(text))
	if err != nil {
		return p, err
	}
	if len(set.Collectives) != 1 {
		return p, errors.New("its document is not one set of connections")
	}
	return set.Collectives[0].Policy, nil
}

const intentFile = "intent.json"

// OpenIntent reads what a folder has.
func OpenIntent(dir string) (*Intent, error) {
	i := &Intent{dir: dir}
	err := readFile(filepath.Join(dir, intentFile), &i.text)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if i.text.Interfaces == nil {
		i.text.Interfaces = map[string]document{}
	}
	return i, err
}

// ErrOld means that a controller said what another has said anew already.
var ErrOld = errors.New("the controller is behind what was obeyed already")

// errNotKept means that what is wanted is not on the disk, and so is not obeyed.
var errNotKept = errors.New("it cannot be written")

// Obey takes in what a controller says, and keeps it; changed tells whether it is anything new.
func (i *Intent) Obey(d *agents.Desired) (changed bool, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	epoch, revision := d.Fence.GetEpoch(), d.Fence.GetRevision()
	if epoch < i.text.Epoch || epoch == i.text.Epoch && revision < i.text.Revision {
		return false, fmt.Errorf("%w: it says %d/%d, and %d/%d was", ErrOld, epoch, revision, i.text.Epoch, i.text.Revision)
	}
	next := intentText{Service: i.text.Service, Epoch: epoch, Revision: revision, Interfaces: map[string]document{}, Collectives: map[string]string{}, Sound: map[string]string{}}
	for _, one := range d.Interfaces {
		have, there := i.text.Interfaces[one.Dev]
		switch {
		case len(one.Document) > 0:
			changed = changed || !there || have.Revision != one.Revision
			fresh := document{Revision: one.Revision, Document: json.RawMessage(one.Document)}
			if there && fresh.sound() == nil {
				fresh.Sound = have.sound()
			}
			next.Interfaces[one.Dev] = fresh
		case there && have.Revision == one.Revision:
			next.Interfaces[one.Dev] = have
		default:
			return false, fmt.Errorf("the document of %s at revision %d was not sent", one.Dev, one.Revision)
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
			next.Sound[c.Name] = have
		} else if sound, ok := i.text.Sound[c.Name]; ok {
			next.Sound[c.Name] = sound
		}
	}
	changed = changed || len(next.Interfaces) != len(i.text.Interfaces) || len(next.Collectives) != len(i.text.Collectives)
	if err := writeFile(filepath.Join(i.dir, intentFile), next); err != nil {
		return false, fmt.Errorf("%w: %w", errNotKept, err)
	}
	i.text = next
	return changed, nil
}

// serve says of which service the controllers are that are obeyed from now on, by the hash of its
// authority. What another one has said stays until this one says something, but its numbers mean
// nothing here: they put nothing in order, and no document is known by them.
func (i *Intent) serve(authority string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.text.Service != "" && i.text.Service != authority { // "" is of an agent of an earlier version
		i.text.Epoch, i.text.Revision = 0, 0
		for dev, d := range i.text.Interfaces {
			d.Revision = 0
			i.text.Interfaces[dev] = d
		}
	}
	i.text.Service = authority
}

// Fence is the newest that was obeyed.
func (i *Intent) Fence() *agents.Fence {
	i.mu.Lock()
	defer i.mu.Unlock()
	return &agents.Fence{Epoch: i.text.Epoch, Revision: i.text.Revision}
}

// Revisions are those of the documents that are here.
func (i *Intent) Revisions() map[string]int64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	out := map[string]int64{}
	for dev, d := range i.text.Interfaces {
		if d.Revision > 0 { // else it is another service's
			out[dev] = d.Revision
		}
	}
	return out
}

// Interfaces are the documents, in the order of their devices. One that cannot be read, or does
// not fit this version, is told of, and the last that did stays in its place: what a newer
// controller says in words that are not known here takes nothing away.
func (i *Intent) Interfaces() (out []Wanted, troubles map[string]error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	troubles = map[string]error{}
	for dev, d := range i.text.Interfaces {
		w, err := d.wanted()
		if err != nil {
			why := err
			if d.Sound != nil { // which may have been of use to another version alone
				w, err = d.Sound.wanted()
			}
			troubles[dev] = unusable(why, err == nil)
			if err != nil {
				continue
			}
		}
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b Wanted) int { return cmp.Compare(a.Dev, b.Dev) })
	return out, troubles
}

// Collectives are the sets, in order (config.Orderly); what is of no use is as with Interfaces.
func (i *Intent) Collectives() (out []collective.Policy, troubles map[string]error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	troubles = map[string]error{}
	for name, text := range i.text.Collectives {
		p, err := policy(name, text)
		if err != nil {
			why := err
			if sound, ok := i.text.Sound[name]; ok {
				p, err = policy(name, sound)
			}
			troubles[name] = unusable(why, err == nil)
			if err != nil {
				continue
			}
		}
		out = append(out, p)
	}
	config.Orderly(out)
	return out, troubles
}

// unusable says why a document is of no use.
func unusable(err error, sound bool) error {
	if sound {
		return fmt.Errorf("what was wanted before stays, because this version of the agent cannot use what is wanted now: upgrade it if the controller is newer: %w", err)
	}
	return fmt.Errorf("this version of the agent cannot use what is wanted: upgrade it if the controller is newer: %w", err)
}

// Source is the file that the controller's interfaces are said to be from.
const Source = "controller"

// Wanted is an interface with the connections that were put in its groups.
type Wanted struct {
	config.Interface
	Connections map[string]store.Connection
}
