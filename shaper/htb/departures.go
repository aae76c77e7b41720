package htb

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"headgate/internal/bpfobj"
	"headgate/shaper/classifier"
)

// departures is the hook that measures how long packets wait: one program for
// the whole machine, and the map in which it finds a device's queues by the token
// that the device's classifier stamps on packets. Both are pinned under the
// build of the program, so that two versions of Headgate can stand side by side
// until the older one's devices have been applied anew.
type departures struct{ devices *ebpf.Map }

const (
	pinDevices = "devices"
	pinHook    = "hook"
)

// openDepartures finds the hook, or puts it in place.
func openDepartures() (*departures, error) {
	dir, err := bpfobj.PinDir(filepath.Join("headgate", "departures-"+classifier.Build(_DeparturesBytes)))
	if err != nil {
		return nil, err
	}
	devices, err := loadDevices(dir)
	if err == nil {
		if hook, err := link.LoadPinnedLink(filepath.Join(dir, pinHook), nil); err == nil {
			hook.Close()
			return &departures{devices}, nil
		}
		devices.Close()
	}
	// Nothing, or what a process left that died between the two, or a map that no
	// program of this build can have made.
	_ = os.Remove(filepath.Join(dir, pinDevices))
	_ = os.Remove(filepath.Join(dir, pinHook))
	return attachDepartures(dir)
}

// loadDevices opens the map that is pinned for this build, if it is one that the
// build could have made.
func loadDevices(dir string) (*ebpf.Map, error) {
	spec, err := loadDepartures()
	if err != nil {
		return nil, err
	}
	m, err := ebpf.LoadPinnedMap(filepath.Join(dir, pinDevices), nil)
	if err != nil {
		return nil, err
	}
	if err := classifier.Fits(spec.Maps[pinDevices], m); err != nil {
		m.Close()
		return nil, fmt.Errorf("what is pinned at %s is not the departure hook's map: %w", filepath.Join(dir, pinDevices), err)
	}
	return m, nil
}

func attachDepartures(dir string) (*departures, error) {
	var objs departuresObjects
	if err := loadDeparturesObjects(&objs, nil); err != nil {
		return nil, fmt.Errorf("cannot load the departure hook: %w", err)
	}
	defer objs.HeadgateDepartures.Close()
	hook, err := link.AttachTracing(link.TracingOptions{Program: objs.HeadgateDepartures})
	if err == nil {
		defer hook.Close()
		if err = objs.Devices.Pin(filepath.Join(dir, pinDevices)); err == nil {
			err = hook.Pin(filepath.Join(dir, pinHook))
		}
	}
	if err != nil {
		objs.Devices.Close()
		return nil, fmt.Errorf("cannot attach the departure hook: %w", err)
	}
	return &departures{objs.Devices}, nil
}

func (d *departures) close() { d.devices.Close() }

// register makes a device's queues known by a new token.
func (d *departures) register(queues *ebpf.Map) (uint32, error) {
	for range 8 {
		var b [4]byte
		if _, err := rand.Read(b[:]); err != nil {
			return 0, fmt.Errorf("cannot draw a token: %w", err)
		}
		token := binary.NativeEndian.Uint32(b[:])
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
	return 0, errors.New("cannot register a device with the departure hook: every token drawn was taken")
}

// knows tells whether the token is registered.
func (d *departures) knows(token uint32) bool {
	var id uint32
	return token != 0 && d.devices.Lookup(token, &id) == nil
}

// known tells whether this build's hook is in place and has the token. Where
// nothing can be pinned nothing can be lost either.
func known(token uint32) bool {
	dir, err := bpfobj.PinDir(filepath.Join("headgate", "departures-"+classifier.Build(_DeparturesBytes)))
	if err != nil {
		return true
	}
	devices, err := loadDevices(dir)
	if err != nil {
		return false
	}
	defer devices.Close()
	hook, err := link.LoadPinnedLink(filepath.Join(dir, pinHook), nil)
	if err != nil {
		return false
	}
	hook.Close()
	return (&departures{devices}).knows(token)
}

// forget takes a token away wherever it is registered, and removes hooks that
// have no device left.
func forget(token uint32) {
	eachHook(func(devices *ebpf.Map) { _ = devices.Delete(token) })
}

// sweepTokens takes away the tokens of devices that went without Clear: no
// program holds their queues any more.
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
		for _, t := range gone {
			_ = devices.Delete(t)
		}
	})
}

// heldMaps are the maps of all classifiers of the machine.
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
			continue // gone meanwhile
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

// eachHook goes through the hooks of all versions, and removes those that have no
// device left after it.
func eachHook(do func(devices *ebpf.Map)) {
	dir, err := bpfobj.PinDir("headgate")
	if err != nil {
		return
	}
	hooks, _ := filepath.Glob(filepath.Join(dir, "departures-*"))
	for _, h := range hooks {
		devices, err := ebpf.LoadPinnedMap(filepath.Join(h, pinDevices), nil)
		if err != nil {
			_ = os.Remove(h) // if nothing is in it
			continue
		}
		// A token is four bytes in every build, and a map of maps gives their ids.
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
