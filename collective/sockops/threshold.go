package sockops

import (
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// pinThreshold is the name of the pinned congestion control.
const pinThreshold = "threshold"

// congestionName is a name in the kernel's 16 bytes.
type congestionName [16]byte

// registerThreshold registers the congestion control of threshold.c with the kernel,
// unless an earlier process has. Without it a released connection is in slow start.
func (t *Table) registerThreshold() {
	name := congestionName{}
	hash := fnv.New32a()
	hash.Write([]byte(t.name))
	copy(name[:], fmt.Sprintf("hg_%08x", hash.Sum32()))
	if err := t.attachThreshold(name); err != nil {
		slog.Warn("cannot register congestion control, released connections will use slow start", "error", err)
		return
	}
	t.threshold = name
}

func (t *Table) attachThreshold(name congestionName) error {
	pin := filepath.Join(t.dir, pinThreshold)
	if _, err := os.Stat(pin); err == nil {
		return nil
	}
	spec, err := loadThreshold()
	if err != nil {
		return err
	}
	copy(spec.Maps[thresholdMapHeadgateOps].Contents[0].Value.([]byte), name[:]) // the name is its first member
	err = linkThreshold(spec.Copy(), pin)
	if errors.Is(err, unix.EINVAL) { // links to it need Linux 6.4
		err = updateThreshold(spec, pin)
	}
	if errors.Is(err, os.ErrExist) { // the one that an earlier process registered is still in use
		return nil
	}
	return err
}

// linkThreshold registers it for as long as the pinned link exists.
func linkThreshold(spec *ebpf.CollectionSpec, pin string) error {
	c, err := ebpf.NewCollection(spec)
	if err != nil {
		return err
	}
	defer c.Close()
	l, err := link.AttachStructOps(link.StructOpsOptions{Map: c.Maps[thresholdMapHeadgateOps]})
	if err != nil {
		return err
	}
	defer l.Close()
	return l.Pin(pin)
}

// updateThreshold registers it until the only element of its map is deleted
// (kernel/bpf/bpf_struct_ops.c, bpf_struct_ops_map_delete_elem).
func updateThreshold(spec *ebpf.CollectionSpec, pin string) error {
	spec.Maps[thresholdMapHeadgateOps].Flags &^= unix.BPF_F_LINK
	c, err := ebpf.NewCollection(spec)
	if err != nil {
		return err
	}
	defer c.Close()
	m := c.Maps[thresholdMapHeadgateOps]
	if err := m.Pin(pin); err != nil {
		return errors.Join(err, m.Delete(thresholdKey))
	}
	return nil
}

// thresholdKey is the key of the only element of a struct_ops map.
const thresholdKey uint32 = 0

// removeThreshold unregisters it, which takes effect as soon as no connection uses it.
func removeThreshold(pin string) error {
	if m, err := ebpf.LoadPinnedMap(pin, nil); err == nil { // fails for a link
		defer m.Close()
		if err := m.Delete(thresholdKey); err != nil {
			return fmt.Errorf("cannot unregister the congestion control %s: %w", pin, err)
		}
	}
	return os.Remove(pin)
}
