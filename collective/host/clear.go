package host

import (
	"errors"
	"os"
	"time"

	"headgate/collective/sockops"
)

// Clear takes away what a program of that name left as it was killed: what it attached, its
// table and its socket. There is something left if found. The programs stay for capped
// connections that send nothing, which they let go as these send again: idle is how many
// there are. While the program runs it is sockops.ErrTaken.
func Clear(instance string) (found bool, idle int, err error) {
	if found, err = sockops.Exists(instance); err != nil || !found {
		return found, 0, err
	}
	table, err := sockops.Open(instance, 1)
	if err != nil {
		return true, 0, err
	}
	defer table.Close()
	idle, err = letGo(table)
	if gone := os.Remove(socketPath(instance)); !errors.Is(gone, os.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return true, idle, err
}

// letGo ends all caps, waits until the connections have noticed, and takes the programs
// away. They stay for those that send nothing, which are let go as soon as they send, by
// programs of another build, too: idle is how many there are.
func letGo(table *sockops.Table) (idle int, err error) {
	idle, held := lift(table), 0
	wait(func() bool {
		held, err = table.Retire()
		return held == 0
	})
	if idle += held; idle > 0 || err != nil {
		return idle, err
	}
	return 0, table.Remove()
}

// lift ends all caps and waits for a while until no connection has one any more. It says how
// many still do.
func lift(table *sockops.Table) (still int) {
	table.Lift()
	wait(func() bool {
		still = capped(table)
		return still == 0
	})
	return still
}

// wait asks until it is done, for as long as the end waits.
func wait(done func() bool) {
	for until := time.Now().Add(liftPatience); !done() && time.Now().Before(until); {
		time.Sleep(Tick)
	}
}

// capped is how many connections are.
func capped(table *sockops.Table) (n int) {
	for c := range table.Connections() {
		if c.Paced > 0 || c.Clamped > 0 {
			n++
		}
	}
	return n
}
