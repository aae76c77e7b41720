package htb

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"headgate.dev/headgate/internal/bpfobj"
	"headgate.dev/headgate/shaper/classifier"
)

// departures is the hook that measures sojourn times: one program for the whole machine, and
// the map in which it finds a device's queues by the token that the device's classifier stamps
// on packets. Both are pinned in a directory named after the build of the program, so that two
// versions of Headgate can coexist until all devices of the older one have been applied again.
type departures struct{ devices *ebpf.Map }

const (
	pinDevices = "devices"
	pinHook    = "hook"
)

// hooks prevents concurrent operations of one process from installing two hooks, and from
// removing a hook that another operation is about to use. Holders of an open departures hold a
// read lock; installation takes the write lock. attach.Locked serialises processes.
var hooks sync.RWMutex

// openDepartures finds the hook, or installs it. The caller must call close.
func openDepartures() (*departures, error) {
	dir, err := hookDir()
	if err != nil {
		return nil, err
	}
	for range 2 {
		hooks.RLock()
		if d, err := findDepartures(dir); err == nil {
			return d, nil
		}
		hooks.RUnlock()
		if err = putDepartures(dir); err != nil {
			return nil, err
		}
	}
	return nil, errors.New("the departure hook was removed during its installation: apply again")
}

// hookDir returns the directory in which the map and the hook of this build are pinned.
func hookDir() (string, error) {
	return bpfobj.PinDir(filepath.Join("headgate", "departures-"+classifier.Build(_DeparturesBytes)))
}

// findDepartures finds the installed hook.
func findDepartures(dir string) (*departures, error) {
	devices, err := loadDevices(dir)
	if err != nil {
		return nil, err
	}
	hook, err := link.LoadPinnedLink(filepath.Join(dir, pinHook), nil)
	if err != nil {
		devices.Close()
		return nil, err
	}
	hook.Close()
	return &departures{devices}, nil
}

// putDepartures installs the hook.
func putDepartures(dir string) error {
	hooks.Lock()
	defer hooks.Unlock()
	if d, err := findDepartures(dir); err == nil { // installed concurrently
		return d.devices.Close()
	}
	// Remove leftovers of a process that died between the two pins, or a map that a program of
	// this build cannot have created.
	_ = os.Remove(filepath.Join(dir, pinDevices))
	_ = os.Remove(filepath.Join(dir, pinHook))
	return attachDepartures(dir)
}

// loadDevices opens the map that is pinned for this build, if its layout is that of the build.
func loadDevices(dir string) (*ebpf.Map, error) {
	spec, err := classifier.Spec(_DeparturesBytes)
	if err != nil {
		return nil, err
	}
	m, err := ebpf.LoadPinnedMap(filepath.Join(dir, pinDevices), nil)
	if err != nil {
		return nil, err
	}
	if err := classifier.Compatible(spec.Maps[pinDevices], m); err != nil {
		m.Close()
		return nil, fmt.Errorf("the object pinned at %s is not the departure hook's map: %w", filepath.Join(dir, pinDevices), err)
	}
	return m, nil
}

func attachDepartures(dir string) error {
	var objs departuresObjects
	if err := loadDeparturesObjects(&objs, nil); err != nil {
		return fmt.Errorf("cannot load the departure hook: %w", err)
	}
	defer objs.Close()
	hook, err := link.AttachTracing(link.TracingOptions{Program: objs.HeadgateDepartures})
	if err == nil {
		defer hook.Close()
		if err = objs.Devices.Pin(filepath.Join(dir, pinDevices)); err == nil {
			err = hook.Pin(filepath.Join(dir, pinHook))
		}
	}
	if err != nil {
		return fmt.Errorf("cannot attach the departure hook: %w", err)
	}
	return nil
}

func (d *departures) close() {
	d.devices.Close()
	hooks.RUnlock()
}

// register registers a device's queues with a new token.
func (d *departures) register(queues *ebpf.Map) (uint32, error) {
	for range 8 {
		var b [2]byte // the lower half of the stamp is the class
		if _, err := rand.Read(b[:]); err != nil {
			return 0, fmt.Errorf("cannot generate a token: %w", err)
		}
		token := uint32(binary.NativeEndian.Uint16(b[:])) << 16
		if token == 0 {
			continue
		}
		err := d.devices.Update(token, queues, ebpf.UpdateNoExist)
		if errors.Is(err, ebpf.ErrKeyExist) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("cannot register a device with the departure hook: %w", err)
		}
		return token, nil
	}
	return 0, errors.New("cannot register a device with the departure hook: all generated tokens are in use")
}

// hasToken reports whether the token is registered.
func (d *departures) hasToken(token uint32) bool {
	var id uint32
	return token != 0 && d.devices.Lookup(token, &id) == nil
}

// tokenRegistered reports whether this build's hook is installed and has the token. If pinning is
// impossible, no registration can be lost, and known returns true.
func tokenRegistered(token uint32) bool {
	dir, err := hookDir()
	if err != nil {
		return true
	}
	hooks.RLock()
	defer hooks.RUnlock()
	d, err := findDepartures(dir)
	if err != nil {
		return false
	}
	defer d.devices.Close()
	return d.hasToken(token)
}

// forget deletes a token from all hooks, and removes hooks without devices.
func forget(token uint32) {
	eachHook(func(devices *ebpf.Map) { _ = devices.Delete(token) })
}

// sweepTokens deletes the tokens of devices that were removed without Clear: no program holds
// their queues.
func sweepTokens() {
	held, err := heldMaps()
	if err != nil {
		return
	}
	eachHook(func(devices *ebpf.Map) {
		var gone []uint32
		var token, queues uint32
		for it := devices.Iterate(); it.Next(&token, &queues); {
			if !held[ebpf.MapID(queues)] {
				gone = append(gone, token)
			}
		}
		if len(gone) == 0 {
			return
		}
		// Deleted in one batch, because for each deletion from a map of maps the kernel waits
		// until all processors have passed a quiescent state, 4 to 14 ms (kernel/bpf/syscall.c,
		// maybe_wait_bpf_programs). Kernels before 5.17 do not support batches for this map.
		if n, err := devices.BatchDelete(gone, nil); err != nil {
			for _, t := range gone[n:] {
				_ = devices.Delete(t)
			}
		}
	})
}

// heldMaps returns the maps of all classifiers of the machine.
func heldMaps() (map[ebpf.MapID]bool, error) {
	held := map[ebpf.MapID]bool{}
	for id := ebpf.ProgramID(0); ; {
		next, err := ebpf.ProgramGetNextID(id)
		if errors.Is(err, os.ErrNotExist) {
			return held, nil
		}
		if err != nil {
			return nil, err
		}
		id = next
		prog, err := ebpf.NewProgramFromID(id)
		if err != nil {
			continue // removed meanwhile
		}
		if info, err := prog.Info(); err == nil && info.Name == classifier.ProgramName {
			ids, _ := info.MapIDs()
			for _, m := range ids {
				held[m] = true
			}
		}
		prog.Close()
	}
}

// eachHook calls do for the hooks of all versions, and removes hooks without devices
// afterwards.
func eachHook(do func(devices *ebpf.Map)) {
	dir, err := bpfobj.PinDir("headgate")
	if err != nil {
		return
	}
	hooks.Lock()
	defer hooks.Unlock()
	all, _ := filepath.Glob(filepath.Join(dir, "departures-*"))
	for _, h := range all {
		devices, err := ebpf.LoadPinnedMap(filepath.Join(h, pinDevices), nil)
		if err != nil {
			_ = os.Remove(h) // succeeds only if the directory is empty
			continue
		}
		// A token has four bytes in every build, and a map of maps returns map IDs.
		if devices.Type() != ebpf.HashOfMaps || devices.KeySize() != 4 {
			devices.Close()
			continue
		}
		do(devices)
		var any uint32
		empty := errors.Is(devices.NextKey(nil, &any), ebpf.ErrKeyNotExist)
		devices.Close()
		if empty {
			_ = os.RemoveAll(h)
		}
	}
}
