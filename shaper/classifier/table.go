package classifier

import (
	"errors"
	"fmt"
	"reflect"
	"unsafe"

	"github.com/cilium/ebpf"

	"headgate.dev/headgate/internal/bpfobj"
)

// batchSize is the number of entries read per system call; it exceeds the entries of any
// bucket of a hash table.
const batchSize = 4096

// chunk holds consecutive entries of a map as bytes. A per-CPU map has one value per processor
// for each key.
type chunk struct {
	keys, values       any    // slices of byte arrays, as the library requires
	keyBytes, valBytes []byte // the same memory
}

func newChunk(entries, perEntry, keySize, valueSize int) (c chunk) {
	c.keys, c.keyBytes = byteArrays(entries, keySize)
	c.values, c.valBytes = byteArrays(entries*perEntry, valueSize)
	return c
}

// byteArrays returns n byte arrays of a size known only at run time.
func byteArrays(n, size int) (any, []byte) {
	array := reflect.ArrayOf(size, reflect.TypeFor[byte]())
	s := reflect.MakeSlice(reflect.SliceOf(array), n, n)
	return s.Interface(), unsafe.Slice((*byte)(s.UnsafePointer()), n*size)
}

// first returns the first n entries.
func (c chunk) first(n, perEntry int) (keys, values any) {
	return reflect.ValueOf(c.keys).Slice(0, n).Interface(), reflect.ValueOf(c.values).Slice(0, n*perEntry).Interface()
}

// valuesPerEntry returns the number of values per key of a map.
func valuesPerEntry(m *ebpf.Map) (int, error) {
	if !perCPU(m.Type()) {
		return 1, nil
	}
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return 0, fmt.Errorf("cannot count processors: %w", err)
	}
	return cpus, nil
}

func perCPU(t ebpf.MapType) bool {
	return t == ebpf.PerCPUArray || t == ebpf.PerCPUHash || t == ebpf.LRUCPUHash
}

// entries reads a map in batches. Entries of a hash table that are added or deleted meanwhile
// may be missed.
func entries(m *ebpf.Map, do func(c chunk, n int) error) error {
	perEntry, err := valuesPerEntry(m)
	if err != nil {
		return err
	}
	c := newChunk(min(batchSize, max(1, int(m.MaxEntries()))), perEntry, int(m.KeySize()), int(m.ValueSize()))
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
			return nil // end of the map
		}
	}
}

// Each calls do for every entry of a table, including tables of another Headgate version with a
// different layout. Entries with a number that does not fit K or V are skipped. Each returns
// bpfobj.ErrLayout if the table cannot be read.
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

// readAs returns the translations from a map's layout to that of Go types.
func readAs[K, V any](m *ebpf.Map) (key, value bpfobj.Conversion, err error) {
	k, v, err := bpfobj.MapLayouts(m)
	if err != nil {
		return key, value, err
	}
	if key, err = bpfobj.NewConversion(k, bpfobj.LayoutOfGo(reflect.TypeFor[K]())); err == nil {
		value, err = bpfobj.NewConversion(v, bpfobj.LayoutOfGo(reflect.TypeFor[V]()))
	}
	if err != nil {
		err = fmt.Errorf("eBPF map %v is of another Headgate version: %w", m, err)
	}
	return key, value, err
}

// HasLayout reports whether the layouts of a map's keys and values are those of K and V, so that it
// can be written.
func HasLayout[K, V any](m *ebpf.Map) (bool, error) {
	k, v, err := bpfobj.MapLayouts(m)
	return k.Compatible(bpfobj.LayoutOfGo(reflect.TypeFor[K]())) && v.Compatible(bpfobj.LayoutOfGo(reflect.TypeFor[V]())), err
}

// ReadAll reads an array; for a per-CPU array, the values of all processors for each entry in
// turn. An unreadable array of another Headgate version is returned as zeros: the values are
// only for display, and the next Apply replaces the array.
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
		err = fmt.Errorf("eBPF map %v returned %d values of %d", m, len(out), want)
	}
	return out, err
}

func asBytes[T any](v *T) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)) }

// part returns the i-th slice of size bytes.
func part(b []byte, i, size int) []byte { return b[i*size:][:size:size] }
