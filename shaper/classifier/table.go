package classifier

import (
	"errors"
	"fmt"
	"reflect"
	"unsafe"

	"github.com/cilium/ebpf"

	"headgate/internal/bpfobj"
)

// entriesAtOnce is how many entries one system call reads; more than a bucket of
// a hash table ever has.
const entriesAtOnce = 4096

// chunk are some entries of a map as bytes, one after the other. A per-CPU map
// has as many values for each key as there are processors.
type chunk struct {
	keys, values       any    // as the library wants them: slices of arrays of bytes
	keyBytes, valBytes []byte // the same memory
}

func newChunk(entries, perEntry, keySize, valueSize int) (c chunk) {
	c.keys, c.keyBytes = byteArrays(entries, keySize)
	c.values, c.valBytes = byteArrays(entries*perEntry, valueSize)
	return c
}

// byteArrays makes n arrays of bytes of a size that is known only now.
func byteArrays(n, size int) (any, []byte) {
	array := reflect.ArrayOf(size, reflect.TypeFor[byte]())
	s := reflect.MakeSlice(reflect.SliceOf(array), n, n)
	return s.Interface(), unsafe.Slice((*byte)(s.UnsafePointer()), n*size)
}

// first are the first n entries.
func (c chunk) first(n, perEntry int) (keys, values any) {
	return reflect.ValueOf(c.keys).Slice(0, n).Interface(), reflect.ValueOf(c.values).Slice(0, n*perEntry).Interface()
}

// valuesPerEntry is how many values a map has for each key.
func valuesPerEntry(m *ebpf.Map) (int, error) {
	if !perCPU(m.Type()) {
		return 1, nil
	}
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return 0, fmt.Errorf("cannot count the processors: %w", err)
	}
	return cpus, nil
}

func perCPU(t ebpf.MapType) bool {
	return t == ebpf.PerCPUArray || t == ebpf.PerCPUHash || t == ebpf.LRUCPUHash
}

// entries reads a map, many entries at a time. Those of a hash table that come or
// go meanwhile may be missed.
func entries(m *ebpf.Map, do func(c chunk, n int) error) error {
	perEntry, err := valuesPerEntry(m)
	if err != nil {
		return err
	}
	c := newChunk(min(entriesAtOnce, max(1, int(m.MaxEntries()))), perEntry, int(m.KeySize()), int(m.ValueSize()))
	for cursor := new(ebpf.MapBatchCursor); ; {
		n, err := m.BatchLookup(cursor, c.keys, c.values, nil)
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("cannot read eBPF map %v: %w", m, err)
		}
		if n > 0 {
			if err := do(c, n); err != nil {
				return err
			}
		}
		if err != nil {
			return nil // the end
		}
	}
}

// Each goes through a table, also one of another Headgate's that lays its keys
// and values out otherwise. Entries with a number that is too large for K or V
// are left out. It is bpfobj.ErrLayout if the table cannot be read.
func Each[K, V any](m *ebpf.Map, do func(K, V)) error {
	toKey, toValue, err := readAs[K, V](m)
	if err != nil {
		return err
	}
	return entries(m, func(c chunk, n int) error {
		perEntry := len(c.valBytes) / int(m.ValueSize()) / (len(c.keyBytes) / int(m.KeySize()))
		for i := range n {
			var key K
			if !toKey.Copy(asBytes(&key), part(c.keyBytes, i, int(m.KeySize()))) {
				continue
			}
			for j := range perEntry {
				var value V
				if toValue.Copy(asBytes(&value), part(c.valBytes, i*perEntry+j, int(m.ValueSize()))) {
					do(key, value)
				}
			}
		}
		return nil
	})
}

// readAs are the ways from a map's layout to that of Go types.
func readAs[K, V any](m *ebpf.Map) (key, value bpfobj.Translation, err error) {
	k, v, err := bpfobj.MapLayouts(m)
	if err != nil {
		return key, value, err
	}
	if key, err = bpfobj.Translate(k, bpfobj.LayoutOfGo(reflect.TypeFor[K]())); err == nil {
		value, err = bpfobj.Translate(v, bpfobj.LayoutOfGo(reflect.TypeFor[V]()))
	}
	if err != nil {
		err = fmt.Errorf("eBPF map %v is another Headgate's: %w", m, err)
	}
	return key, value, err
}

// IsOf tells whether a map's keys and values are laid out as K and V, so that they
// can be written.
func IsOf[K, V any](m *ebpf.Map) (bool, error) {
	k, v, err := bpfobj.MapLayouts(m)
	return k.Same(bpfobj.LayoutOfGo(reflect.TypeFor[K]())) && v.Same(bpfobj.LayoutOfGo(reflect.TypeFor[V]())), err
}

// ReadAll reads an array; of a per-CPU one, the values of all processors for each
// entry in turn. Another Headgate's that cannot be read is all zero: it is for
// show, and the next Apply replaces it.
func ReadAll[V any](m *ebpf.Map) ([]V, error) {
	if m == nil {
		return nil, nil
	}
	perEntry, err := valuesPerEntry(m)
	if err != nil {
		return nil, err
	}
	out := make([]V, 0, int(m.MaxEntries())*perEntry)
	err = Each(m, func(_ uint32, v V) { out = append(out, v) })
	want := int(m.MaxEntries()) * perEntry
	if errors.Is(err, bpfobj.ErrLayout) {
		return make([]V, want), nil
	}
	if err == nil && len(out) != want {
		err = fmt.Errorf("eBPF map %v gave %d values of %d", m, len(out), want)
	}
	return out, err
}

func asBytes[T any](v *T) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)) }

// part is the i-th of parts of a size.
func part(b []byte, i, size int) []byte { return b[i*size:][:size:size] }
