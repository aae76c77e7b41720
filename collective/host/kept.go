package host

import (
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"headgate.dev/headgate/collective"
	"headgate.dev/headgate/internal/wholefile"
)

// Intervals, chosen by Headgate.
const (
	// keepEvery is the interval at which what sets have learned is written to a file: a learned rate is an average over a minute.
	keepEvery = 5 * time.Second
	// restoreFor is the time in which the connections of an earlier process are seen again, if they still exist.
	restoreFor = 5 * time.Second
)

// keptFile is the file in which a process keeps what it has learned for the next one. It is valid until the machine restarts, as cookies and the monotonic clock are, and
// /run is emptied then.
func keptFile(instance string) string { return filepath.Join(socketDir, instance+".needs.json") }

// kept is the content of the file: sets by name.
type kept struct {
	Sets map[string]keptSet `json:"sets"`
}

type keptSet struct {
	Connections map[collective.ID]keptConnection `json:"connections,omitempty"`
	Roles       []collective.KeptRole            `json:"roles,omitempty"`
}

// keptConnection is what is known of a connection.
type keptConnection struct {
	Role collective.Role `json:"role"`
	Need collective.Need `json:"need"`
}

// kept returns what the sets have learned.
func (h *Host) kept() kept {
	k := kept{map[string]keptSet{}}
	for _, s := range h.sets {
		of := keptSet{maps.Clone(s.restored), s.needs.Kept()}
		for id, m := range s.members {
			if need := m.part.need(id); need.Known() {
				if of.Connections == nil {
					of.Connections = map[collective.ID]keptConnection{}
				}
				of.Connections[id] = keptConnection{m.role, need}
			}
		}
		k.Sets[s.policy.Name] = of
	}
	return k
}

// restore gives the sets what those of an earlier process with the same names have learned.
func (h *Host) restore() {
	h.keeper.ready = true
	var k kept
	text, err := os.ReadFile(h.keeper.file)
	if err == nil {
		err = json.Unmarshal(text, &k)
	}
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	if err != nil {
		slog.Warn("cannot read what an earlier process has learned: learning again", "file", h.keeper.file, "error", err)
		return
	}
	for _, s := range h.sets {
		of := k.Sets[s.policy.Name]
		s.needs = collective.NewNeeds(of.Roles)
		maps.Copy(s.restored, of.Connections)
	}
}

// keeper writes the file.
type keeper struct {
	file    string
	ready   bool          // what an earlier process has kept was read
	at      time.Duration // of the last start
	writing sync.Mutex
	last    string // logged error
}

// start writes without making the caller wait, unless it is still writing.
func (k *keeper) start(what kept) {
	if !k.writing.TryLock() {
		return
	}
	go func() {
		defer k.writing.Unlock()
		k.save(what)
	}()
}

// write writes, after what start may be writing.
func (k *keeper) write(what kept) {
	k.writing.Lock()
	defer k.writing.Unlock()
	k.save(what)
}

func (k *keeper) save(what kept) {
	text, err := json.Marshal(what)
	if err == nil {
		err = errors.Join(os.MkdirAll(filepath.Dir(k.file), 0o755), wholefile.Write(k.file, text, 0o600))
	}
	if err == nil {
		k.last = ""
	} else if err.Error() != k.last {
		k.last = err.Error()
		slog.Warn("cannot keep what sets have learned: a restart under congestion would learn again", "file", k.file, "error", err)
	}
}
