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

var specs sync.Map // by build, as they were read

// Spec reads eBPF objects, once a process: what it gives is the caller's to change. To read the
// classifier takes 2 ms, and each device needs it twice. Source lines are left out: to pass them
// on took 0.5 of the 8 ms in which the kernel takes a program.
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

// Program is a classifier in the kernel with its maps, not attached yet.
type Program struct {
	*ebpf.Program
	Maps   map[string]*ebpf.Map
	Record Record

	carried []carried       // maps that the old program goes on to write to until this one is attached
	fresh   map[uint32]bool // the class ids of groups that are new
}

// Close closes the program and its maps; what is attached stays.
func (p *Program) Close() {
	p.Program.Close()
	Close(p.Maps)
}

// Load loads a spec that Configure has written to, with what it inherits, fills
// the rest, and binds the record. last is the record of the program that it will
// take the place of, if there is one.
func Load(spec *ebpf.CollectionSpec, t Table, r Record, last *Record, from Inherited) (*Program, error) {
	coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: from.Reuse})
	if err != nil {
		return nil, verifierError(err)
	}
	defer coll.Close()
	if err := Fill(coll, t); err != nil {
		return nil, err
	}
	carried, err := carryAll(coll.Maps, from.Carry)
	if err != nil {
		return nil, err
	}
	if err := ZeroNew(coll.Maps[Counters], r, last); err != nil {
		return nil, err
	}
	if err := r.Bind(coll.Programs[ProgramName]); err != nil {
		return nil, err
	}
	p := &Program{Program: coll.DetachProgram(ProgramName), Maps: map[string]*ebpf.Map{}, Record: r, carried: carried, fresh: fresh(r, last)}
	for name := range coll.Maps {
		p.Maps[name] = coll.DetachMap(name)
	}
	return p, nil
}

// fresh are the class ids of groups that are new, by which others may have been
// known before. last is the record of the program until now, if there is one.
func fresh(r Record, last *Record) map[uint32]bool {
	ids := map[uint32]bool{}
	for key, id := range r.Classes {
		if last != nil && last.Classes[key] != id {
			ids[uint32(id)] = true
		}
	}
	return ids
}

// ZeroNew begins the counters of groups that are new at zero, in a map by class
// id and CPU.
func ZeroNew(m *ebpf.Map, r Record, last *Record) error {
	if m == nil {
		return nil
	}
	zero, _ := byteArrays(ebpf.MustPossibleCPU(), int(m.ValueSize()))
	for id := range fresh(r, last) {
		if err := m.Put(id, zero); err != nil {
			return fmt.Errorf("cannot begin the counters of class %x: %w", id, err)
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
