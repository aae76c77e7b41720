package host

import (
	"errors"
	"os"
	"time"

	"headgate.dev/headgate/collective/sockops"
)

// Clear removes what a killed process with that name left: its programs, its table,
// its socket, and what it has learned. found reports whether there was something. The programs remain for capped
// connections that send nothing, and release these when they send again; idle is their
// number. If the process is running, Clear returns sockops.ErrInUse.
func Clear(instance string) (found bool, idle int, err error) {
	if found, err = sockops.Exists(instance); err != nil || !found {
		return found, 0, err
	}
	table, err := sockops.Open(instance, 1)
	if err != nil {
		return true, 0, err
	}
	defer table.Close()
	idle, err = release(table)
	return true, idle, errors.Join(err, remove(socketPath(instance)), ForgetNeeds(instance))
}

// Forget removes what an instance has kept of its connections and congestions.
func Forget(instance string) error {
	return errors.Join(ForgetNeeds(instance), remove(congestionsFile(instance)))
}

// ForgetNeeds removes what an instance has kept of its connections for the next process, if there will be none.
func ForgetNeeds(instance string) error { return remove(keptFile(instance)) }

// remove removes a file, if it exists.
func remove(file string) error {
	if err := os.Remove(file); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// release lifts all caps, waits until the connections have noticed, and removes the
// programs. The programs, also those of another build, remain for connections that send
// nothing, and release these as soon as they send. idle is their number.
func release(table *sockops.Table) (idle int, err error) {
	idle, held := releaseCaps(table), 0
	waitFor(func() bool {
		held, err = table.RetireOtherBuilds()
		return held == 0
	})
	if idle += held; idle > 0 || err != nil {
		return idle, err
	}
	return 0, table.Remove()
}

// releaseCaps lifts all caps and waits for a while until no connection has one. It returns how
// many still have one.
func releaseCaps(table *sockops.Table) (still int) {
	table.Lift()
	waitFor(func() bool {
		still = capped(table)
		return still == 0
	})
	return still
}

// waitFor calls done until it returns true, for at most releaseTimeout.
func waitFor(done func() bool) {
	for until := time.Now().Add(releaseTimeout); !done() && time.Now().Before(until); {
		time.Sleep(Tick)
	}
}

// capped returns the number of capped connections.
func capped(table *sockops.Table) (n int) {
	for c := range table.Connections() {
		if c.Paced > 0 || c.Clamped > 0 {
			n++
		}
	}
	return n
}
