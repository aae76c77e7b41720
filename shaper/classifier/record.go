package classifier

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"os"

	"github.com/cilium/ebpf"

	"headgate/group"
	"headgate/shaper"
)

// Record is what a classifier program was made for. It is bound to the program
// itself: whoever finds the filter finds the plan, and both change in the same
// instant. It is written as gob, which an older or newer Headgate can read.
type Record struct {
	Engine group.Engine
	// Build names the eBPF code, so that a newer Headgate replaces an older one's.
	Build string
	// Plan is the whole device's, and In tells which of its directions this is.
	Plan shaper.Plan
	In   bool
	// Classes are the minor numbers of groups, by path.
	Classes map[string]uint16
	// Cgroups are the ids behind the paths in the rules when the program was made.
	Cgroups map[string]uint64
	// Clsact tells that the clsact qdisc was made by Headgate.
	Clsact bool
	// IFB is the index of the device that ingress is redirected to, or 0.
	IFB int
	// Token is the device and direction to the departure hook, or 0 without it.
	Token uint32
	// Generation is the rules'.
	Generation uint32
	// LinkHeader is the length of the device's link header.
	LinkHeader uint32
}

// Tree is the direction of the plan that the record is about.
func (r Record) Tree() *group.Tree {
	if r.In {
		return r.Plan.In
	}
	return r.Plan.Out
}

// recordName is the map that holds a record.
const recordName = "headgate_record"

// Bind attaches the record to its program.
func (r Record) Bind(p *ebpf.Program) error {
	var buf bytes.Buffer
	if err := gob.NewEncoder(&buf).Encode(r); err != nil {
		return fmt.Errorf("cannot write the record of a program: %w", err)
	}
	m, err := ebpf.NewMap(&ebpf.MapSpec{
		Name: recordName, Type: ebpf.Array, KeySize: 4, ValueSize: uint32(buf.Len()), MaxEntries: 1,
	})
	if err != nil {
		return fmt.Errorf("cannot make the record of a program: %w", err)
	}
	defer m.Close()
	if err := m.Put(uint32(0), buf.Bytes()); err != nil {
		return fmt.Errorf("cannot write the record of a program: %w", err)
	}
	if err := p.BindMap(m); err != nil {
		return fmt.Errorf("cannot bind the record to its program: %w", err)
	}
	return nil
}

// ReadRecord reads what Bind attached. It is os.ErrNotExist if there is none.
func ReadRecord(maps map[string]*ebpf.Map) (Record, error) {
	var r Record
	m, ok := maps[recordName]
	if !ok {
		return r, fmt.Errorf("the program has no record: %w", os.ErrNotExist)
	}
	b, err := m.LookupBytes(uint32(0))
	if err != nil {
		return r, fmt.Errorf("cannot read a program's record: %w", err)
	}
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(&r); err != nil {
		return r, fmt.Errorf("cannot read a program's record: %w", err)
	}
	return r, nil
}
