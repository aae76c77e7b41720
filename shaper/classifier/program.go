package classifier

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
)

// ProgramName is what every engine calls its classifier.
const ProgramName = "headgate"

// Build is a short name for eBPF objects, so that a newer Headgate knows an
// older one's.
func Build(objects ...[]byte) string {
	h := sha256.New()
	for _, o := range objects {
		h.Write(o)
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}

// Program is a classifier in the kernel with its maps, not attached yet.
type Program struct {
	*ebpf.Program
	Maps   map[string]*ebpf.Map
	Record Record
}

// Close closes the program and its maps; what is attached stays.
func (p *Program) Close() {
	p.Program.Close()
	Close(p.Maps)
}

// Load loads a spec that Configure has written to, goes on with the maps in
// reuse, fills the rest, and binds the record. old are the maps of the program
// that it will take the place of, and last its record, if there is one.
func Load(spec *ebpf.CollectionSpec, t Table, r Record, last *Record, old, reuse map[string]*ebpf.Map) (*Program, error) {
	coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: reuse})
	if err != nil {
		return nil, verifierError(err)
	}
	defer coll.Close()
	if err := Fill(coll, t); err != nil {
		return nil, err
	}
	CarryOver(coll, old, reuse)
	if err := ZeroNew(coll.Maps[Counters], r, last); err != nil {
		return nil, err
	}
	if err := r.Bind(coll.Programs[ProgramName]); err != nil {
		return nil, err
	}
	p := &Program{coll.DetachProgram(ProgramName), map[string]*ebpf.Map{}, r}
	for name := range coll.Maps {
		p.Maps[name] = coll.DetachMap(name)
	}
	return p, nil
}

// ZeroNew begins the counters of groups that are new at zero, in a map by class
// id and CPU: their ids may have been others' before. last is the record of the
// program that used the map until now, if there is one.
func ZeroNew(m *ebpf.Map, r Record, last *Record) error {
	if m == nil || last == nil {
		return nil
	}
	zero := make([][]byte, ebpf.MustPossibleCPU())
	for i := range zero {
		zero[i] = make([]byte, m.ValueSize())
	}
	for key, id := range r.Classes {
		if last.Classes[key] == id {
			continue
		}
		if err := m.Put(uint32(id), zero); err != nil {
			return fmt.Errorf("cannot begin the counters of group %s: %w", key, err)
		}
	}
	return nil
}

func verifierError(err error) error {
	var v *ebpf.VerifierError
	if errors.As(err, &v) {
		return fmt.Errorf("the kernel does not accept the eBPF classifier: %w", v)
	}
	return fmt.Errorf("cannot load the eBPF classifier: %w", err)
}
