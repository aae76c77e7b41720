package bpfobj

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/cilium/ebpf/btf"
)

// Layout describes where the members of a map's keys or values are. Two builds of a program can
// have different layouts, and match members by name.
type Layout struct {
	Size   int
	fields []field // nil if there is no description
}

// field is a number or an array of numbers. Bytes between fields are padding.
type field struct {
	name           string // of nested members: a.b; of a plain number: ""
	offset         int
	element, count int // bytes of one number, and how many numbers
}

func (f field) size() int { return f.element * f.count }

// Opaque returns the layout of bytes without a description.
func Opaque(size int) Layout { return Layout{Size: size} }

// LayoutOf returns the layout of a type of an eBPF object. Only numbers, and structs and arrays of
// them at any depth, are supported.
func LayoutOf(t btf.Type) (Layout, error) {
	size, err := btf.Sizeof(t)
	if err != nil {
		return Layout{}, fmt.Errorf("cannot determine the size of %v: %w", t, err)
	}
	l := Layout{Size: size}
	return l, l.addBTF("", 0, t)
}

func (l *Layout) addBTF(name string, offset int, t btf.Type) error {
	switch t := btf.UnderlyingType(t).(type) {
	case *btf.Int:
		l.add(name, offset, int(t.Size), 1)
	case *btf.Enum:
		l.add(name, offset, int(t.Size), 1)
	case *btf.Array:
		size, err := btf.Sizeof(t.Type)
		if err != nil {
			return fmt.Errorf("cannot determine the size of %s's elements: %w", name, err)
		}
		if _, number := btf.UnderlyingType(t.Type).(*btf.Int); number {
			l.add(name, offset, size, int(t.Nelems))
			return nil
		}
		for i := range int(t.Nelems) {
			if err := l.addBTF(fmt.Sprintf("%s[%d]", name, i), offset+i*size, t.Type); err != nil {
				return err
			}
		}
	case *btf.Struct:
		for _, m := range t.Members {
			if m.BitfieldSize != 0 {
				return fmt.Errorf("member %s is a bit field", m.Name)
			}
			if err := l.addBTF(join(name, m.Name), offset+int(m.Offset.Bytes()), m.Type); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("member %s is not a number, array or struct, but %v", name, t)
	}
	return nil
}

// LayoutOfGo returns the layout of a Go type. Its fields have the names of an eBPF object's
// members, apart from case and underscores; fields named "_" are padding.
func LayoutOfGo(t reflect.Type) Layout {
	l := Layout{Size: int(t.Size())}
	l.addGo("", 0, t)
	return l
}

func (l *Layout) addGo(name string, offset int, t reflect.Type) {
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.Name != "_" {
				l.addGo(join(name, f.Name), offset+int(f.Offset), f.Type)
			}
		}
	case reflect.Array:
		l.add(name, offset, int(t.Elem().Size()), t.Len())
	default:
		l.add(name, offset, int(t.Size()), 1)
	}
}

func join(outer, inner string) string {
	if outer == "" || inner == "" {
		return outer + inner
	}
	return outer + "." + inner
}

// add appends a member, unless its name says that it is padding.
func (l *Layout) add(name string, offset, element, count int) {
	name = strings.ToLower(strings.ReplaceAll(name, "_", ""))
	if name != "pad" && count > 0 {
		l.fields = append(l.fields, field{name, offset, element, count})
	}
}

// Compatible reports whether data of one layout can be read with the other. If one of them is opaque,
// only the sizes are compared.
func (l Layout) Compatible(o Layout) bool {
	return l.Size == o.Size && (l.fields == nil || o.fields == nil || slices.EqualFunc(l.fields, o.fields, func(a, b field) bool {
		// An address may be four words in one layout and sixteen bytes in the other.
		return a.name == b.name && a.offset == b.offset && a.size() == b.size()
	}))
}

// ErrLayout means that data cannot be converted from one layout to another.
var ErrLayout = errors.New("incompatible layouts")

// Conversion converts keys or values from one layout to another.
type Conversion struct{ steps []step }

// step copies n bytes. The rest bytes that follow them in the old layout have no place in the new
// one, and must be zero.
type step struct{ from, to, n, rest int }

// NewConversion returns the conversion from one layout to another. Members of the same name are copied,
// wider or narrower, and all other members are zero. It is an error if no member is common. A plain
// number corresponds to the first member of a struct, as with a C pointer.
func NewConversion(from, to Layout) (Conversion, error) {
	if from.Compatible(to) {
		return Conversion{[]step{{n: from.Size}}}, nil
	}
	if from.fields == nil || to.fields == nil {
		return Conversion{}, fmt.Errorf("%w: the size changed from %d to %d bytes, and BTF does not describe them", ErrLayout, from.Size, to.Size)
	}
	old := make(map[string]field, len(from.fields))
	for _, f := range from.fields {
		old[f.name] = f
	}
	if f, plain := old[""]; plain {
		old[to.fields[0].name] = f
	}
	var t Conversion
	for i, f := range to.fields {
		was, known := old[f.name]
		if f.name == "" && i == 0 {
			was, known = from.fields[0], true
		}
		if !known {
			continue
		}
		steps, err := convert(was, f)
		if err != nil {
			return Conversion{}, err
		}
		t.steps = append(t.steps, steps...)
	}
	if len(t.steps) == 0 {
		return Conversion{}, fmt.Errorf("%w: no common member", ErrLayout)
	}
	return t, nil
}

// convert returns the steps for one member. Numbers are little-endian: the objects are compiled for
// such machines only.
func convert(from, to field) ([]step, error) {
	switch {
	case from.size() == to.size():
		return []step{{from.offset, to.offset, from.size(), 0}}, nil
	case from.element == to.element:
		n := min(from.size(), to.size())
		return []step{{from.offset, to.offset, n, from.size() - n}}, nil
	case from.count == to.count:
		var out []step
		n := min(from.element, to.element)
		for i := range from.count {
			out = append(out, step{from.offset + i*from.element, to.offset + i*to.element, n, from.element - n})
		}
		return out, nil
	}
	return nil, fmt.Errorf("%w: member %s changed from %d numbers of %d bytes to %d of %d",
		ErrLayout, to.name, from.count, from.element, to.count, to.element)
}

// Copy converts one key or value; to must be zero before. It returns false if a number is too large
// for the new layout.
func (t Conversion) Copy(to, from []byte) bool {
	for _, s := range t.steps {
		copy(to[s.to:s.to+s.n], from[s.from:])
		for _, b := range from[s.from+s.n : s.from+s.n+s.rest] {
			if b != 0 {
				return false
			}
		}
	}
	return true
}

// AddDelta adds the growth from before to now to every number of sum.
func (l Layout) AddDelta(sum, now, before []byte) {
	for _, f := range l.fields {
		for i := range f.count {
			at, end := f.offset+i*f.element, f.offset+(i+1)*f.element
			put(sum[at:end], number(sum[at:end])+number(now[at:end])-number(before[at:end]))
		}
	}
}

func number(b []byte) (n uint64) {
	for i := len(b) - 1; i >= 0; i-- {
		n = n<<8 | uint64(b[i])
	}
	return n
}

func put(b []byte, n uint64) {
	for i := range b {
		b[i] = byte(n >> (8 * i))
	}
}
