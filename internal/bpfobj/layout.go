package bpfobj

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/cilium/ebpf/btf"
)

// Layout is where the members of a map's keys or values lie. Two builds of a
// program can differ in it, and then know each other's members by name.
type Layout struct {
	Size   int
	fields []field // nil if nobody described them
}

// field is a number or an array of numbers. What lies between fields is padding.
type field struct {
	name           string // of members in members, a.b; of a plain number, none
	offset         int
	element, count int // bytes of one number, and how many there are
}

func (f field) size() int { return f.element * f.count }

// Opaque is the layout of bytes that nobody described.
func Opaque(size int) Layout { return Layout{Size: size} }

// LayoutOf reads a type of an eBPF object. What is not numbers, in structs and
// arrays of any depth, is an error.
func LayoutOf(t btf.Type) (Layout, error) {
	size, err := btf.Sizeof(t)
	if err != nil {
		return Layout{}, fmt.Errorf("cannot tell the size of %v: %w", t, err)
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
			return fmt.Errorf("cannot tell the size of %s's elements: %w", name, err)
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
		return fmt.Errorf("member %s is neither number, array nor struct, but %v", name, t)
	}
	return nil
}

// LayoutOfGo reads a Go type. Its fields have the names of an eBPF object's
// members but for case and underscores; those called "_" are padding.
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

// add notes a member, if it is not padding with a name.
func (l *Layout) add(name string, offset, element, count int) {
	name = strings.ToLower(strings.ReplaceAll(name, "_", ""))
	if name != "pad" && count > 0 {
		l.fields = append(l.fields, field{name, offset, element, count})
	}
}

// Same tells whether what one program wrote another can read. Where one of them
// is not described, the size has to do.
func (l Layout) Same(o Layout) bool {
	return l.Size == o.Size && (l.fields == nil || o.fields == nil || slices.EqualFunc(l.fields, o.fields, func(a, b field) bool {
		// An address may be four words to one and sixteen bytes to the other.
		return a.name == b.name && a.offset == b.offset && a.size() == b.size()
	}))
}

// ErrLayout means that there is no way from one layout to another.
var ErrLayout = errors.New("the layout is another")

// Translation brings keys or values from one layout to another.
type Translation struct{ steps []step }

// step copies n bytes; those that follow in the old layout have no place in the
// new one, and must be zero.
type step struct{ from, to, n, rest int }

// Translate finds the way from one layout to another: members of one name are
// copied, wider or narrower, and all others are zero. It is an error if they have
// nothing in common. A plain number is the first member of a struct, as it is to
// a C pointer.
func Translate(from, to Layout) (Translation, error) {
	if from.Same(to) {
		return Translation{[]step{{n: from.Size}}}, nil
	}
	if from.fields == nil || to.fields == nil {
		return Translation{}, fmt.Errorf("%w: %d bytes became %d, and BTF does not say what they are", ErrLayout, from.Size, to.Size)
	}
	old := make(map[string]field, len(from.fields))
	for _, f := range from.fields {
		old[f.name] = f
	}
	if f, plain := old[""]; plain {
		old[to.fields[0].name] = f
	}
	var t Translation
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
			return Translation{}, err
		}
		t.steps = append(t.steps, steps...)
	}
	if len(t.steps) == 0 {
		return Translation{}, fmt.Errorf("%w: no member has stayed", ErrLayout)
	}
	return t, nil
}

// convert copies one member. Numbers have their lowest byte first: the objects
// are compiled for such machines only.
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
	return nil, fmt.Errorf("%w: member %s was %d numbers of %d bytes and is %d of %d",
		ErrLayout, to.name, from.count, from.element, to.count, to.element)
}

// Copy translates one key or value; to is zero before. It is false if a number
// is too large for its new place.
func (t Translation) Copy(to, from []byte) bool {
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

// Advance adds to every number of sum what it has grown by from before to now.
func (l Layout) Advance(sum, now, before []byte) {
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
