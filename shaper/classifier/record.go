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

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/nl"
	"headgate.dev/headgate/shaper"
)

// Record is the configuration of a classifier program. It is bound to the program itself, so
// the attached filter identifies its plan, and program and record change atomically. The
// encoding is gob, which older and newer Headgate versions can read.
type Record struct {
	Engine group.Engine
	// Build identifies the eBPF code, so that a newer Headgate replaces older programs.
	Build string
	// Plan is the plan of the whole device; In selects the direction of this program.
	Plan shaper.Plan
	In   bool
	// Classes maps group paths to the minor numbers of classes.
	Classes map[string]uint16
	// Places maps group paths to the minor numbers of their clients.
	Places map[string]ClientRange
	// Cgroups maps the paths in the rules to cgroup IDs at the time of loading.
	Cgroups map[string]uint64
	// Clsact is set if Headgate created the clsact qdisc.
	Clsact bool
	// IFB is the index of the IFB that ingress is redirected to, or 0.
	IFB int
	// Forward is set if an nftables chain, and not the program, sends packets to the IFB.
	Forward bool
	// Token identifies the device and direction for the departure hook, or is 0 without the
	// hook.
	Token uint32
	// Generation is the generation of the rules.
	Generation uint32
	// LinkHeader is the length of the device's link header.
	LinkHeader uint32
	// Options are options of the engine.
	Options []byte
	// Sized is the change of the device's super-packet limit on this side, or nil if the limit
	// was not changed.
	Sized *GSOChange
}

// GSOChange is a device's super-packet limit that Headgate has set.
type GSOChange struct {
	Before, Set nl.MaxSize
	Left        bool // another program has set the limit to Set since; Headgate leaves it unchanged
}

// SameSized reports whether both are equal or both nil.
func SameSized(a, b *GSOChange) bool { return a == b || a != nil && b != nil && *a == *b }

// Tree returns the tree of the record's direction.
func (r Record) Tree() *group.Tree {
	if r.In {
		return r.Plan.In
	}
	return r.Plan.Out
}

// Equal reports whether both records are equivalent.
func (r Record) Equal(o Record) bool {
	return r.SameProgram(o) && r.Plan.Equal(o.Plan) && SameSized(r.Sized, o.Sized)
}

// SameProgram reports whether the same program serves both records: only amounts differ.
func (r Record) SameProgram(o Record) bool {
	return r.Engine == o.Engine && r.Build == o.Build && r.In == o.In && r.Clsact == o.Clsact && r.IFB == o.IFB && r.Forward == o.Forward &&
		r.Token == o.Token && r.Generation == o.Generation && r.Tree().Limit == o.Tree().Limit &&
		bytes.Equal(r.Options, o.Options) && SameRules(&r, &o)
}

// SameRules reports whether packets are classified equally under both records.
func SameRules(a, b *Record) bool {
	return a != nil && b != nil && a.LinkHeader == b.LinkHeader && a.Tree().SameRules(*b.Tree()) &&
		maps.Equal(a.Classes, b.Classes) && maps.Equal(a.Places, b.Places) && maps.Equal(a.Cgroups, b.Cgroups)
}

// Class returns the minor number of a group.
func (r Record) Class(n group.Node) uint16 { return r.Classes[ClassKey(n)] }

// recordName is the name of the map that holds a record.
const recordName = "headgate_record"

// ErrRecord means that a record exists, but this version of Headgate cannot read it.
var ErrRecord = errors.New("cannot read the record of the eBPF program")

// Bind attaches the record to its program.
func (r Record) Bind(p *ebpf.Program) error {
	text, err := r.encode()
	if err != nil {
		return err
	}
	// Spare space for longer names and numbers, so that Rewrite usually fits.
	m, err := ebpf.NewMap(&ebpf.MapSpec{
		Name: recordName, Type: ebpf.Array, KeySize: 4, ValueSize: uint32(len(text)+len(text)/4+4096) &^ 7, MaxEntries: 1,
	})
	if err != nil {
		return fmt.Errorf("cannot create the record of a program: %w", err)
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

// Rewrite replaces the record of a program that stays loaded. It returns false if the record
// does not fit.
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

// encode returns the length of the record in eight bytes, followed by the record.
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

// ReadRecord reads the record that Bind attached. It returns os.ErrNotExist if there is none.
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

// decode parses the output of encode and ignores trailing bytes.
func decode(b []byte) (r Record, err error) {
	length := uint64(0)
	if len(b) > lengthSize {
		length = binary.NativeEndian.Uint64(b)
	}
	if length == 0 || length > uint64(len(b)-lengthSize) {
		return r, fmt.Errorf("%w: its length is %d bytes in a map of %d", ErrRecord, length, len(b))
	}
	text := b[lengthSize:][:length]
	err = gob.NewDecoder(bytes.NewReader(text)).Decode(&r)
	if err != nil {
		var old recordV1
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
