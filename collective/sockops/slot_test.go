package sockops

import (
	"reflect"
	"testing"

	"github.com/cilium/ebpf/btf"
)

// The C and the Go struct of a slot have the same layout, member by member.
func TestSlot(t *testing.T) {
	spec, err := loadSockops()
	if err != nil {
		t.Fatal(err)
	}
	c := btf.UnderlyingType(spec.Maps[pinSlots].Value).(*btf.Struct)
	ours := reflect.TypeFor[slot]()
	if uintptr(c.Size) != ours.Size() {
		t.Errorf("a slot has %d bytes in C, %d in Go", c.Size, ours.Size())
	}
	var members []reflect.StructField
	for f := range ours.Fields() {
		if f.Name != "_" {
			members = append(members, f)
		}
	}
	if len(members) != len(c.Members) {
		t.Fatalf("%d members in C, %d in Go", len(c.Members), len(members))
	}
	for i, m := range c.Members {
		if size, err := btf.Sizeof(m.Type); err != nil || uintptr(m.Offset.Bytes()) != members[i].Offset || uintptr(size) != members[i].Type.Size() {
			t.Errorf("%s is at %d with %d bytes, %s at %d with %d", m.Name, m.Offset.Bytes(), size, members[i].Name, members[i].Offset, members[i].Type.Size())
		}
	}
}
