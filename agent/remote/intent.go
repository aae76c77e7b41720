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
	Epoch      uint64              `json:"epoch"`
	Revision   int64               `json:"revision"`
	Interfaces map[string]document `json:"interfaces"`
	// Collectives are documents of files, by name.
	Collectives map[string]string `json:"collectives,omitempty"`
}

type document struct {
	Revision int64           `json:"revision"`
	Document json.RawMessage `json:"document"`
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

// Obey takes in what a controller says, and keeps it; changed tells whether it is anything new.
func (i *Intent) Obey(d *agents.Desired) (changed bool, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	epoch, revision := d.Fence.GetEpoch(), d.Fence.GetRevision()
	if epoch < i.text.Epoch || epoch == i.text.Epoch && revision < i.text.Revision {
		return false, fmt.Errorf("%w: it says %d/%d, and %d/%d was", ErrOld, epoch, revision, i.text.Epoch, i.text.Revision)
	}
	next := intentText{Epoch: epoch, Revision: revision, Interfaces: map[string]document{}, Collectives: map[string]string{}}
	for _, one := range d.Interfaces {
		have, there := i.text.Interfaces[one.Dev]
		switch {
		case len(one.Document) > 0:
			changed = changed || !there || have.Revision != one.Revision
			next.Interfaces[one.Dev] = document{one.Revision, json.RawMessage(one.Document)}
		case there && have.Revision == one.Revision:
			next.Interfaces[one.Dev] = have
		default:
			return false, fmt.Errorf("the document of %s at revision %d was not sent", one.Dev, one.Revision)
		}
	}
	for _, c := range d.Collectives {
		changed = changed || i.text.Collectives[c.Name] != c.Text
		next.Collectives[c.Name] = c.Text
	}
	changed = changed || len(next.Interfaces) != len(i.text.Interfaces) || len(next.Collectives) != len(i.text.Collectives)
	if err := writeFile(filepath.Join(i.dir, intentFile), next); err != nil {
		return false, fmt.Errorf("what is wanted cannot be kept: %w", err)
	}
	i.text = next
	return changed, nil
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
		out[dev] = d.Revision
	}
	return out
}

// Interfaces are the documents, in the order of their devices; one that cannot be read, or does
// not fit this version, is left out and told of.
func (i *Intent) Interfaces() (out []Wanted, troubles map[string]error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	troubles = map[string]error{}
	for dev, d := range i.text.Interfaces {
		var doc store.Interface
		if err := json.Unmarshal(d.Document, &doc); err != nil {
			troubles[dev] = err
			continue
		}
		resolved, problems := doc.Resolve()
		if len(problems) > 0 {
			troubles[dev] = problems[0]
			continue
		}
		out = append(out, Wanted{config.Interface{Resolved: resolved, File: Source, Line: int(d.Revision)}, doc.Connections})
	}
	slices.SortFunc(out, func(a, b Wanted) int { return cmp.Compare(a.Dev, b.Dev) })
	return out, troubles
}

// Collectives are the sets, in order (config.Orderly); one that cannot be read, or does not fit
// this version, is left out and told of.
func (i *Intent) Collectives() (out []collective.Policy, troubles map[string]error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	troubles = map[string]error{}
	for name, text := range i.text.Collectives {
		set, err := config.Parse(name, []byte(text))
		switch {
		case err != nil:
			troubles[name] = err
		case len(set.Collectives) != 1:
			troubles[name] = errors.New("its document is not one set of connections")
		default:
			out = append(out, set.Collectives[0].Policy)
		}
	}
	config.Orderly(out)
	return out, troubles
}

// Source is the file that the controller's interfaces are said to be from.
const Source = "controller"

// Wanted is an interface with the connections that were put in its groups.
type Wanted struct {
	config.Interface
	Connections map[string]store.Connection
}
