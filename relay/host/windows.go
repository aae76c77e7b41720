package host

import (
	"golang.org/x/sys/unix"

	"headgate.dev/headgate/relay/stripe"
)

// windows are those of connections and sessions.
var windows = windowsOf(memory())

// windowsOf returns the windows on a machine with so many bytes of memory, chosen for Headgate. Two paths of 300 Mbit/s
// and 25 and 400 ms need 75 MB of one connection while the slow one retransmits: its queue has doubled its round-trip
// time, and meanwhile the fast one delivers 45 MB.
func windowsOf(memory uint64) stripe.Options {
	session := int(min(memory/8, 1<<30))
	return stripe.Options{ConnWindow: session / 4, SessionWindow: session, MaxPending: 1 << 20, Free: freePayload}
}

// memory returns the machine's memory in bytes, 1 GiB if it is unknown.
func memory() uint64 {
	var i unix.Sysinfo_t
	if unix.Sysinfo(&i) != nil {
		return 1 << 30
	}
	return uint64(i.Totalram) * uint64(i.Unit)
}
