package classifier

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	"github.com/cilium/ebpf"
)

// ProgramName is the name of every engine's classifier program.
const ProgramName = "headgate"

// Build returns a short hash of eBPF objects, by which a newer Headgate recognizes the programs
// of an older version.
func Build(objects ...[]byte) string {
	h := sha256.New()
	for _, o := range objects {
		h.Write(o)
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}

var specs sync.Map // parsed specs by build

// Spec parses an eBPF object, once per process, and returns a copy that the caller may change.
// Parsing the classifier takes 2 ms, and each device needs it twice. Source lines are removed,
// because passing them to the kernel took 0.5 of the 8 ms of loading a program.
func Spec(object []byte) (*ebpf.CollectionSpec, error) {
	build := Build(object)
	spec, ok := specs.Load(build)
	if !ok {
		read, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
		if err != nil {
			return nil, err
		}
		for _, p := range read.Programs {
			for i, ins := range p.Instructions {
				p.Instructions[i] = ins.WithSource(nil)
			}
		}
		spec, _ = specs.LoadOrStore(build, read)
	}
	return spec.(*ebpf.CollectionSpec).Copy(), nil
}

// Program is a loaded classifier with its maps, not attached yet.
type Program struct {
	*ebpf.Program
	Maps   map[string]*ebpf.Map
	Record Record

	migrations  []migration     // maps that the old program still writes to until this program is attached
	newClassIDs map[uint32]bool // class IDs of new groups
}

// Close closes the program and its maps; an attached program stays attached.
func (p *Program) Close() {
	p.Program.Close()
	Close(p.Maps)
}

// Load loads a spec that was prepared by Configure, takes over the inherited maps, fills the
// others, and binds the record. last is the record of the program that is replaced, or nil.
func Load(spec *ebpf.CollectionSpec, t Table, r Record, last *Record, from Inherited) (*Program, error) {
	coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: from.Reuse})
	if err != nil {
		return nil, verifierError(err)
	}
	defer coll.Close()
	if err := Fill(coll, t); err != nil {
		return nil, err
	}
	carried, err := migrateAll(coll.Maps, from.Migrate)
	if err != nil {
		return nil, err
	}
	if err := ZeroNew(coll.Maps[Counters], r, last); err != nil {
		return nil, err
	}
	if err := r.Bind(coll.Programs[ProgramName]); err != nil {
		return nil, err
	}
	p := &Program{Program: coll.DetachProgram(ProgramName), Maps: map[string]*ebpf.Map{}, Record: r, migrations: carried, newClassIDs: newClassIDs(r, last)}
	for name := range coll.Maps {
		p.Maps[name] = coll.DetachMap(name)
	}
	return p, nil
}

// newClassIDs returns the class IDs of new groups, which other groups may have used before. last is
// the record of the previous program, or nil.
func newClassIDs(r Record, last *Record) map[uint32]bool {
	ids := map[uint32]bool{}
	for key, id := range r.Classes {
		if last != nil && last.Classes[key] != id {
			ids[uint32(id)] = true
		}
	}
	return ids
}

// ZeroNew resets the counters of new groups, in a per-CPU map indexed by class ID.
func ZeroNew(m *ebpf.Map, r Record, last *Record) error {
	if m == nil {
		return nil
	}
	zero, _ := byteArrays(ebpf.MustPossibleCPU(), int(m.ValueSize()))
	for id := range newClassIDs(r, last) {
		if err := m.Put(id, zero); err != nil {
			return fmt.Errorf("cannot reset the counters of class %x: %w", id, err)
		}
	}
	return nil
}

func verifierError(err error) error {
	var v *ebpf.VerifierError
	if errors.As(err, &v) {
		return fmt.Errorf("the kernel rejected the eBPF classifier: %w", v)
	}
	return fmt.Errorf("cannot load the eBPF classifier: %w", err)
}
