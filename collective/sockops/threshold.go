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
)

// pinThreshold is the name of the pinned congestion control.
const pinThreshold = "threshold"

// congestionName is a name in the kernel's 16 bytes.
type congestionName [16]byte

// registerThreshold makes the congestion control of threshold.c known to the kernel, unless
// an earlier process has. Without it a connection that is let go is in slow start.
func (t *Table) registerThreshold() {
	name := congestionName{}
	hash := fnv.New32a()
	hash.Write([]byte(t.name))
	copy(name[:], fmt.Sprintf("hg_%08x", hash.Sum32()))
	if err := t.attachThreshold(name); err != nil {
		slog.Warn("connections that are let go begin with slow start", "error", err)
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
	const ops = "headgate_ops"
	copy(spec.Maps[ops].Contents[0].Value.([]byte), name[:]) // its first member
	c, err := ebpf.NewCollection(spec)
	if err != nil {
		return err
	}
	defer c.Close()
	l, err := link.AttachStructOps(link.StructOpsOptions{Map: c.Maps[ops]})
	if errors.Is(err, os.ErrExist) { // what an earlier process registered is still in use
		return nil
	}
	if err != nil {
		return err
	}
	defer l.Close()
	return l.Pin(pin)
}
