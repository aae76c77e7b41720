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
	sameLayout(t, c, reflect.TypeFor[slot]())
}

// sameLayout compares a struct in C with the one in Go.
func sameLayout(t *testing.T, c *btf.Struct, ours reflect.Type) {
	t.Helper()
	if uintptr(c.Size) != ours.Size() {
		t.Errorf("%s has %d bytes in C, %d in Go", c.Name, c.Size, ours.Size())
	}
	var members []reflect.StructField
	for f := range ours.Fields() {
		if f.Name != "_" {
			members = append(members, f)
		}
	}
	if len(members) != len(c.Members) {
		t.Fatalf("%s has %d members in C, %d in Go", c.Name, len(c.Members), len(members))
	}
	for i, m := range c.Members {
		if size, err := btf.Sizeof(m.Type); err != nil || uintptr(m.Offset.Bytes()) != members[i].Offset || uintptr(size) != members[i].Type.Size() {
			t.Errorf("%s is at %d with %d bytes, %s at %d with %d", m.Name, m.Offset.Bytes(), size, members[i].Name, members[i].Offset, members[i].Type.Size())
		}
	}
}

func TestLife(t *testing.T) {
	spec, err := loadSockops()
	if err != nil {
		t.Fatal(err)
	}
	c := btf.UnderlyingType(spec.Maps[pinLives].Value).(*btf.Struct)
	sameLayout(t, c, reflect.TypeFor[life]())
}

func TestStart(t *testing.T) {
	spec, err := loadSockops()
	if err != nil {
		t.Fatal(err)
	}
	m := spec.Maps[pinStarts]
	sameLayout(t, btf.UnderlyingType(m.Key).(*btf.Struct), reflect.TypeFor[startKey]())
	sameLayout(t, btf.UnderlyingType(m.Value).(*btf.Struct), reflect.TypeFor[start]())
}
