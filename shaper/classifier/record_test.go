package classifier

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"net/netip"
	"os"
	"reflect"
	"testing"

	"github.com/cilium/ebpf"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// earlierRecord is a record of an older Headgate version, without Options, Cgroups and others,
// and with a field Colour that was removed later.
type earlierRecord struct {
	Colour string
	Build  string
	Plan   earlierPlan
	In     bool
	Engine string
	// Classes and Generation had other types.
	Classes    map[string]uint64
	Generation uint8
}

type earlierPlan struct {
	Dev    string
	Out    *earlierTree
	Colour []string
}

type earlierTree struct {
	Limit  uint64
	Colour int
	Nodes  []struct {
		Path string
		Leaf bool
	}
}

// recordMaps returns a program's maps with a record of any type.
func recordMaps(t *testing.T, record any) map[string]*ebpf.Map {
	t.Helper()
	buf := bytes.NewBuffer(make([]byte, lengthSize))
	if err := gob.NewEncoder(buf).Encode(record); err != nil {
		t.Fatal(err)
	}
	text := buf.Bytes()
	binary.NativeEndian.PutUint64(text, uint64(len(text)-lengthSize))
	m := makeMap(t, &ebpf.MapSpec{Name: recordName, Type: ebpf.Array, KeySize: 4, ValueSize: uint32(len(text)+7) &^ 7, MaxEntries: 1})
	if err := write(m, text); err != nil {
		t.Fatal(err)
	}
	return map[string]*ebpf.Map{recordName: m}
}

func TestRecordOfEarlierVersion(t *testing.T) {
	needRoot(t)
	old := earlierRecord{
		Colour: "blue", Build: "b", In: false, Engine: string(group.HTB), Classes: map[string]uint64{"web": 7}, Generation: 9,
		Plan: earlierPlan{Dev: "eth0", Colour: []string{"red"}, Out: &earlierTree{Limit: 1e6, Colour: 3}},
	}
	old.Plan.Out.Nodes = append(old.Plan.Out.Nodes, struct {
		Path string
		Leaf bool
	}{"web", true})
	got, err := ReadRecord(recordMaps(t, old))
	if err != nil {
		t.Fatal(err)
	}
	want := Record{
		Engine: group.HTB, Build: "b", Classes: map[string]uint16{"web": 7}, Generation: 9,
		Plan: shaper.Plan{Dev: "eth0", Out: &group.Tree{Limit: unit.Mbit, Nodes: []group.Node{{Path: "web", Leaf: true}}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v\nwant %+v", got, want)
	}
	if got.SameProgram(Record{Engine: group.HTB, Build: "c", Plan: want.Plan, Classes: want.Classes, Generation: 9}) {
		t.Error("SameProgram is true for another build")
	}
}

// TestRecordOfPlainNumbers: earlier rules had DSCP, VLAN and marks as plain numbers, which gob
// cannot decode into ranges.
func TestRecordOfPlainNumbers(t *testing.T) {
	needRoot(t)
	old := recordV1{
		Engine: group.HTB, Build: "b", Classes: map[string]uint16{"web": 7}, Token: 3, IFB: 4, Clsact: true, Generation: 5, LinkHeader: 14, Options: []byte{1}, Cgroups: map[string]uint64{"/a": 9},
		Plan: plainPlan{Dev: "eth0", Perspective: group.Host, Overhead: group.Overhead{Frame: 8}, Out: &plainTree{
			Limit: unit.Mbit, Spare: group.Equal, Nodes: []group.Node{{Path: "web", Leaf: true}}, Default: 1,
			Rules: []plainRule{{plainSelector{Proto: []uint8{6}, Src: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, DPort: []group.PortRange{{First: 1, Last: 2}}, DSCP: []uint8{46}, VLAN: []uint16{5}, Mark: []uint32{7}, Cgroup: "/a"}, 2}},
		}},
	}
	want := Record{
		Engine: group.HTB, Build: "b", Classes: map[string]uint16{"web": 7}, Token: 3, IFB: 4, Clsact: true, Generation: 5, LinkHeader: 14, Options: []byte{1}, Cgroups: map[string]uint64{"/a": 9},
		Plan: shaper.Plan{Dev: "eth0", Perspective: group.Host, Overhead: group.Overhead{Frame: 8}, Out: &group.Tree{
			Limit: unit.Mbit, Spare: group.Equal, Nodes: []group.Node{{Path: "web", Leaf: true}}, Default: 1,
			Rules: []group.Rule{{Selector: group.Selector{
				Proto: []uint8{6}, Src: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, DPort: []group.PortRange{{First: 1, Last: 2}},
				DSCP: []group.Range{group.SingleRange(46)}, VLAN: []group.Range{group.SingleRange(5)}, Mark: []group.Mark{{Value: 7, Mask: group.AllBits}}, Cgroup: "/a",
			}, Node: 2}},
		}},
	}
	if got, err := ReadRecord(recordMaps(t, old)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, %v\nwant %+v", got, err, want)
	}
	// A record of the present version must not be decoded as an earlier one.
	if got, err := ReadRecord(recordMaps(t, want)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, %v\nwant %+v", got, err, want)
	}
}

func TestRecordOfLaterVersion(t *testing.T) {
	needRoot(t)
	want := Record{
		Engine: group.HTB, Build: "z", Classes: map[string]uint16{"web": 7}, Token: 1, IFB: 3,
		Plan: shaper.Plan{Dev: "eth0", Out: &group.Tree{Limit: unit.Mbit, Nodes: []group.Node{{Path: "web", Leaf: true}}}},
	}
	later := struct {
		Engine  group.Engine
		Build   string
		Plan    shaper.Plan
		Classes map[string]uint16
		Token   uint32
		IFB     int
		Colour  map[string]struct{ Red, Green int }
	}{want.Engine, want.Build, want.Plan, want.Classes, want.Token, want.IFB, map[string]struct{ Red, Green int }{"a": {1, 2}}}
	got, err := ReadRecord(recordMaps(t, later))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, %v\nwant %+v", got, err, want)
	}
}

func TestInvalidRecord(t *testing.T) {
	needRoot(t)
	for name, text := range map[string]any{
		"no common field":         struct{ Colour string }{"blue"},
		"no groups":               Record{Build: "b"},
		"a field of another type": struct{ Build int }{3},
		"not a struct":            "text",
	} {
		if r, err := ReadRecord(recordMaps(t, text)); !errors.Is(err, ErrRecord) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	if _, err := ReadRecord(nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no record: %v", err)
	}
}

// FuzzDecode: a record survives a round trip, or is rejected with ErrRecord.
func FuzzDecode(f *testing.F) {
	tree := group.Tree{Limit: unit.Mbit, Nodes: []group.Node{{Path: "all", Leaf: true, Parent: -1}}}
	b, err := Record{Engine: group.HTB, Plan: shaper.Plan{Dev: "eth0", Out: &tree}, Classes: map[string]uint16{"all": 16}}.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(append(b, 0, 0, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decode(b)
		if err != nil {
			if !errors.Is(err, ErrRecord) {
				t.Errorf("%v is not ErrRecord", err)
			}
			return
		}
		again, err := r.encode()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := decode(again); err != nil || !back.Equal(r) {
			t.Errorf("%+v after a round trip is %+v, %v", r, back, err)
		}
	})
}
