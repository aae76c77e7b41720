package bpfobj

import (
	"encoding/hex"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
)

var (
	u8  = &btf.Int{Name: "u8", Size: 1}
	u16 = &btf.Int{Name: "u16", Size: 2}
	u32 = &btf.Typedef{Name: "__u32", Type: &btf.Int{Name: "u32", Size: 4}}
	u64 = &btf.Int{Name: "u64", Size: 8}
)

func array(t btf.Type, n uint32) btf.Type {
	return &btf.Array{Index: u32, Type: t, Nelems: n}
}

type member struct {
	name   string
	offset uint32
	t      btf.Type
}

func structOf(size uint32, members ...member) btf.Type {
	s := &btf.Struct{Name: "s", Size: size}
	for _, m := range members {
		s.Members = append(s.Members, btf.Member{Name: m.name, Type: m.t, Offset: btf.Bits(m.offset * 8)})
	}
	return s
}

func TestTranslate(t *testing.T) {
	ab := structOf(8, member{"a", 0, u32}, member{"b", 4, u32})
	for _, c := range []struct {
		name         string
		from, to     btf.Type
		in, out, err string // bytes in hexadecimal; out is "large" if a number does not fit
	}{
		{"identical", ab, ab, "0100000002000000", "0100000002000000", ""},
		{"different order", ab, structOf(8, member{"b", 0, u32}, member{"a", 4, u32}), "0100000002000000", "0200000001000000", ""},
		{"wider", ab, structOf(16, member{"a", 0, u64}, member{"b", 8, u32}), "ff000000feffffff", "ff00000000000000feffffff00000000", ""},
		{"narrower", ab, structOf(3, member{"a", 0, u8}, member{"b", 1, u16}), "ff000000feff0000", "fffeff", ""},
		{"too large", ab, structOf(3, member{"a", 0, u8}, member{"b", 1, u16}), "00010000feff0000", "large", ""},
		{"one more member", ab, structOf(12, member{"a", 0, u32}, member{"c", 4, u32}, member{"b", 8, u32}), "0100000002000000", "010000000000000002000000", ""},
		{"one member less", ab, structOf(4, member{"b", 0, u32}), "0100000002000000", "02000000", ""},
		{"nothing in common", ab, structOf(8, member{"c", 0, u64}), "", "", "no common member"},
		{"padding is not a member", structOf(8, member{"a", 0, u32}, member{"pad", 4, u32}), structOf(8, member{"pad", 0, u32}, member{"a", 4, u32}),
			"0100000002000000", "0000000001000000", ""},
		{"a plain number", u32, u64, "fffffffe", "fffffffe00000000", ""},
		{"a number becomes a struct", u32, structOf(16, member{"classes", 0, u32}, member{"since", 8, u64}), "01020304", "01020304000000000000000000000000", ""},
		{"a struct becomes a number", structOf(16, member{"classes", 0, u64}, member{"since", 8, u64}), u32, "01020304000000000900000000000000", "01020304", ""},
		{"an array of another number type, of the same size", structOf(4, member{"a", 0, u32}), structOf(6, member{"c", 0, u16}, member{"a", 2, array(u8, 4)}), "01020304", "000001020304", ""},
		{"an array of wider numbers", structOf(2, member{"a", 0, array(u8, 2)}), structOf(4, member{"a", 0, array(u16, 2)}), "0102", "01000200", ""},
		{"a shorter array", structOf(3, member{"a", 0, array(u8, 3)}), structOf(2, member{"a", 0, array(u8, 2)}), "010200", "0102", ""},
		{"a shorter array, full", structOf(3, member{"a", 0, array(u8, 3)}), structOf(2, member{"a", 0, array(u8, 2)}), "010203", "large", ""},
		{"an array of another length and number type", structOf(3, member{"a", 0, array(u8, 3)}), structOf(4, member{"a", 0, array(u16, 2)}), "", "", "3 numbers of 1 bytes to 2 of 2"},
		{"members of members", structOf(8, member{"in", 0, ab}), structOf(12, member{"x", 0, u32}, member{"in", 4, structOf(8, member{"b", 0, u32}, member{"a", 4, u32})}),
			"0100000002000000", "000000000200000001000000", ""},
		{"an array of structs", structOf(4, member{"g", 0, array(structOf(2, member{"a", 0, u8}, member{"b", 1, u8}), 2)}),
			structOf(4, member{"g", 0, array(structOf(2, member{"b", 0, u8}, member{"a", 1, u8}), 2)}), "01020304", "02010403", ""},
	} {
		from, err := LayoutOf(c.from)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		to, err := LayoutOf(c.to)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		tr, err := NewConversion(from, to)
		if c.err != "" {
			if !errors.Is(err, ErrLayout) || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: error %v, want %q", c.name, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		in, err := hex.DecodeString(c.in)
		if err != nil {
			t.Fatal(err)
		}
		out := make([]byte, to.Size)
		got := "large"
		if tr.Copy(out, in) {
			got = hex.EncodeToString(out)
		}
		if got != c.out {
			t.Errorf("%s: %s was converted to %s, want %s", c.name, c.in, got, c.out)
		}
	}
}

// Types other than numbers have no described layout, and are compared by size only.
func TestOpaque(t *testing.T) {
	pointer := structOf(8, member{"p", 0, &btf.Pointer{Target: u32}})
	if _, err := LayoutOf(pointer); err == nil {
		t.Error("a pointer was accepted as a number")
	}
	bits := &btf.Struct{Name: "s", Size: 4, Members: []btf.Member{{Name: "a", Type: u32, BitfieldSize: 3}}}
	if _, err := LayoutOf(bits); err == nil {
		t.Error("a bit field was accepted as a number")
	}
	known, err := LayoutOf(structOf(8, member{"a", 0, u64}))
	if err != nil {
		t.Fatal(err)
	}
	if !LayoutOrOpaque(pointer, 8).Compatible(known) || LayoutOrOpaque(pointer, 8).Compatible(Opaque(4)) || !LayoutOrOpaque(nil, 8).Compatible(known) {
		t.Error("layouts without a description must be compared by size")
	}
	if _, err := NewConversion(Opaque(4), known); !errors.Is(err, ErrLayout) {
		t.Errorf("4 opaque bytes to 8: %v", err)
	}
	tr, err := NewConversion(Opaque(8), known)
	out := make([]byte, 8)
	if err != nil || !tr.Copy(out, []byte("12345678")) || string(out) != "12345678" {
		t.Errorf("8 opaque bytes to 8: %q, %v", out, err)
	}
}

func TestSame(t *testing.T) {
	type words struct {
		SrcAddr [16]byte
		Port    [2]byte
		_       uint16
	}
	address := structOf(20, member{"src_addr", 0, array(u32, 4)}, member{"port", 16, u16}, member{"pad", 18, u16})
	l, err := LayoutOf(address)
	if err != nil {
		t.Fatal(err)
	}
	if !l.Compatible(LayoutOfGo(reflect.TypeFor[words]())) {
		t.Error("a Go type and the struct that it describes have different layouts")
	}
	moved, err := LayoutOf(structOf(20, member{"port", 0, u16}, member{"src_addr", 4, array(u32, 4)}))
	if err != nil {
		t.Fatal(err)
	}
	if l.Compatible(moved) {
		t.Error("layouts with members at different offsets are the same")
	}
}

func TestAdvance(t *testing.T) {
	l, err := LayoutOf(structOf(12, member{"a", 0, u64}, member{"b", 8, u32}))
	if err != nil {
		t.Fatal(err)
	}
	b := func(s string) []byte {
		out, err := hex.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	sum := b("ff0000000000000001000000")
	l.AddDelta(sum, b("0300000000000000ffffffff"), b("0100000000000000feffffff"))
	if got := hex.EncodeToString(sum); got != "010100000000000002000000" {
		t.Errorf("sum is %s", got)
	}
}
