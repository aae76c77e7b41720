package classifier

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"maps"
	"os"

	"github.com/cilium/ebpf"

	"headgate/group"
	"headgate/internal/nl"
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
	// Places are the minor numbers of clients, by their group's path.
	Places map[string]Places
	// Cgroups are the ids behind the paths in the rules when the program was made.
	Cgroups map[string]uint64
	// Clsact tells that the clsact qdisc was made by Headgate.
	Clsact bool
	// IFB is the index of the device that ingress is redirected to, or 0.
	IFB int
	// Forward tells that a chain of nftables sends packets there, and not the program.
	Forward bool
	// Token is the device and direction to the departure hook, or 0 without it.
	Token uint32
	// Generation is the rules'.
	Generation uint32
	// LinkHeader is the length of the device's link header.
	LinkHeader uint32
	// Options are the engine's own.
	Options []byte
	// Sized is what was made of the device's limit of super-packets on this side, nil
	// if it was left as it is.
	Sized *Sized
}

// Sized is a device's limit of super-packets that Headgate has set.
type Sized struct {
	Before, Set nl.MaxSize
	Left        bool // somebody else has set it since, to Set, and it is theirs
}

// SameSized tells whether both say the same.
func SameSized(a, b *Sized) bool { return a == b || a != nil && b != nil && *a == *b }

// Tree is the direction of the plan that the record is about.
func (r Record) Tree() *group.Tree {
	if r.In {
		return r.Plan.In
	}
	return r.Plan.Out
}

// Equal tells whether both say the same.
func (r Record) Equal(o Record) bool {
	return r.SameProgram(o) && r.Plan.Equal(o.Plan) && SameSized(r.Sized, o.Sized)
}

// SameProgram tells whether one program serves both: only amounts differ.
func (r Record) SameProgram(o Record) bool {
	return r.Engine == o.Engine && r.Build == o.Build && r.In == o.In && r.Clsact == o.Clsact && r.IFB == o.IFB && r.Forward == o.Forward &&
		r.Token == o.Token && r.Generation == o.Generation && r.Tree().Limit == o.Tree().Limit &&
		bytes.Equal(r.Options, o.Options) && SameRules(&r, &o)
}

// SameRules tells whether packets are classified alike under both.
func SameRules(a, b *Record) bool {
	return a != nil && b != nil && a.LinkHeader == b.LinkHeader && a.Tree().SameRules(*b.Tree()) &&
		maps.Equal(a.Classes, b.Classes) && maps.Equal(a.Places, b.Places) && maps.Equal(a.Cgroups, b.Cgroups)
}

// Class is the minor number of a group.
func (r Record) Class(n group.Node) uint16 { return r.Classes[ClassKey(n)] }

// recordName is the map that holds a record.
const recordName = "headgate_record"

// ErrRecord means that there is a record that this Headgate cannot read.
var ErrRecord = errors.New("the program's record cannot be read")

// Bind attaches the record to its program.
func (r Record) Bind(p *ebpf.Program) error {
	text, err := r.encode()
	if err != nil {
		return err
	}
	// Room for longer names and numbers, so that Rewrite mostly fits.
	m, err := ebpf.NewMap(&ebpf.MapSpec{
		Name: recordName, Type: ebpf.Array, KeySize: 4, ValueSize: uint32(len(text)+len(text)/4+4096) &^ 7, MaxEntries: 1,
	})
	if err != nil {
		return fmt.Errorf("cannot make the record of a program: %w", err)
	}
	defer m.Close()
	if err := write(m, text); err != nil {
		return err
	}
	if err := p.BindMap(m); err != nil {
		return fmt.Errorf("cannot bind the record to its program: %w", err)
	}
	return nil
}

// Rewrite puts r in the place of the record of a program that stays. It is false
// if it does not fit.
func (r Record) Rewrite(maps map[string]*ebpf.Map) (bool, error) {
	m, ok := maps[recordName]
	if !ok {
		return false, nil
	}
	text, err := r.encode()
	if err != nil || len(text) > int(m.ValueSize()) {
		return false, err
	}
	return true, write(m, text)
}

// encode gives the record's length in eight bytes and the record.
func (r Record) encode() ([]byte, error) {
	buf := bytes.NewBuffer(make([]byte, lengthSize))
	if err := gob.NewEncoder(buf).Encode(r); err != nil {
		return nil, fmt.Errorf("cannot write the record of a program: %w", err)
	}
	b := buf.Bytes()
	binary.NativeEndian.PutUint64(b, uint64(len(b)-lengthSize))
	return b, nil
}

const lengthSize = 8

func write(m *ebpf.Map, text []byte) error {
	value := make([]byte, m.ValueSize())
	copy(value, text)
	if err := m.Put(uint32(0), value); err != nil {
		return fmt.Errorf("cannot write the record of a program: %w", err)
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
	return decode(b)
}

// decode reads what encode gives, and what may follow it.
func decode(b []byte) (r Record, err error) {
	length := uint64(0)
	if len(b) > lengthSize {
		length = binary.NativeEndian.Uint64(b)
	}
	if length == 0 || length > uint64(len(b)-lengthSize) {
		return r, fmt.Errorf("%w: it has %d bytes in a map of %d", ErrRecord, length, len(b))
	}
	text := b[lengthSize:][:length]
	err = gob.NewDecoder(bytes.NewReader(text)).Decode(&r)
	if err != nil {
		var old plainRecord
		if gob.NewDecoder(bytes.NewReader(text)).Decode(&old) == nil {
			r, err = old.record(), nil
		}
	}
	if err == nil && r.Tree() == nil {
		err = errors.New("it has no groups")
	}
	if err != nil {
		return r, fmt.Errorf("%w: %v", ErrRecord, err)
	}
	return r, nil
}
