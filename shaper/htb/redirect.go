package htb

import (
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"headgate/internal/nl"
	"headgate/shaper/classifier"
)

// attachFilter puts a side's classifier on its hook, which redirects to a device
// unless ifb is 0. A redirect by the program itself does not reach an IFB before
// Linux 6.4, nor from a device without a link header (attach.AttachRedirecting).
func (k *kernel) attachFilter(b *nl.Batch, i int, p *ebpf.Program, ifb int) {
	if ifb != 0 && k.byAction() {
		k.AttachRedirecting(b, i, p, ifb)
		return
	}
	k.Attach(b, i, p)
}

// byAction tells whether the redirect is done by an action of the filter.
func (k *kernel) byAction() bool {
	header, err := k.LinkHeader() // an error has ended the apply before this
	return before(6, 4) || err == nil && header == 0
}

// redirectsTo is the device that a record's filter redirects to, or 0.
func redirectsTo(r classifier.Record) int {
	if r.Forward {
		return 0
	}
	return r.IFB
}

// before tells whether the running kernel is older. A distribution's kernel that
// has more than its number says is served as well by what the older one needs.
func before(major, minor int) bool {
	var u unix.Utsname
	var hasMajor, hasMinor int
	if unix.Uname(&u) != nil {
		return false
	}
	if _, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &hasMajor, &hasMinor); err != nil {
		return false
	}
	return hasMajor < major || hasMajor == major && hasMinor < minor
}
