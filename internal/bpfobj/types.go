package bpfobj

import (
	"fmt"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// MapLayouts returns the layouts of a loaded map's keys and values, as described in the BTF of the
// program for which the map was created; opaque without a description.
func MapLayouts(m *ebpf.Map) (key, value Layout, err error) {
	key, value = Opaque(int(m.KeySize())), Opaque(int(m.ValueSize()))
	info, err := mapTypes(m)
	if err != nil || info.btf == 0 {
		return key, value, err
	}
	h, err := btf.NewHandleFromID(btf.ID(info.btf))
	if err != nil {
		return key, value, fmt.Errorf("cannot open the BTF of eBPF map %v: %w", m, err)
	}
	defer h.Close()
	spec, err := h.Spec(nil)
	if err != nil {
		return key, value, fmt.Errorf("cannot read the BTF of eBPF map %v: %w", m, err)
	}
	return described(spec, info.key, key), described(spec, info.value, value), nil
}

// described returns the layout of a type, or otherwise if the type is not supported or has another
// size.
func described(spec *btf.Spec, id uint32, otherwise Layout) Layout {
	if id == 0 {
		return otherwise
	}
	t, err := spec.TypeByID(btf.TypeID(id))
	if err != nil {
		return otherwise
	}
	return LayoutOrOpaque(t, otherwise.Size)
}

// LayoutOrOpaque returns the layout of a type of size bytes, opaque if the type is not supported.
func LayoutOrOpaque(t btf.Type, size int) Layout {
	if t == nil {
		return Opaque(size)
	}
	if l, err := LayoutOf(t); err == nil && l.Size == size {
		return l
	}
	return Opaque(size)
}

// types locates the types of a map: the id of the BTF, and the type ids of key and value in it.
type types struct{ btf, key, value uint32 }

// mapInfo is the beginning of struct bpf_map_info (uapi/linux/bpf.h).
type mapInfo struct {
	_           [4]uint32 // type, id, key_size, value_size
	_           [2]uint32 // max_entries, map_flags
	_           [16]byte  // name
	_           [2]uint32 // ifindex, btf_vmlinux_value_type_id
	_           [2]uint64 // netns_dev, netns_ino
	BTFID       uint32
	KeyTypeID   uint32
	ValueTypeID uint32
	_           uint32 // btf_vmlinux_id
}

// mapTypes queries the kernel, because the library does not return the types of key and value.
func mapTypes(m *ebpf.Map) (types, error) {
	var info mapInfo
	attr := struct {
		fd, length uint32
		info       unsafe.Pointer
		_          [8 - unsafe.Sizeof(uintptr(0))]byte // the kernel expects a pointer of eight bytes
	}{fd: uint32(m.FD()), length: uint32(unsafe.Sizeof(info)), info: unsafe.Pointer(&info)}
	_, _, e := unix.Syscall(unix.SYS_BPF, unix.BPF_OBJ_GET_INFO_BY_FD, uintptr(unsafe.Pointer(&attr)), unsafe.Offsetof(attr.info)+8)
	if e != 0 {
		return types{}, fmt.Errorf("cannot read the BTF ids of eBPF map %v: %w", m, e)
	}
	return types{info.BTFID, info.KeyTypeID, info.ValueTypeID}, nil
}
