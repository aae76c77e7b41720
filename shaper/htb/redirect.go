package htb

import (
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"headgate.dev/headgate/internal/nl"
	"headgate.dev/headgate/shaper/classifier"
)

// attachFilter attaches a side's classifier to its hook, with a redirect to a device unless ifb
// is 0. A redirect by the program itself does not reach an IFB before Linux 6.4, or from a
// device without a link header (attach.AttachRedirecting).
func (k *kernel) attachFilter(b *nl.Batch, i int, p *ebpf.Program, ifb int) {
	if ifb != 0 && k.byAction() {
		k.AttachRedirecting(b, i, p, ifb)
		return
	}
	k.Attach(b, i, p)
}

// byAction reports whether an action of the filter does the redirect.
func (k *kernel) byAction() bool {
	header, err := k.LinkHeader() // an error has ended the apply before
	return before(6, 4) || err == nil && header == 0
}

// redirectsTo returns the index of the device that a record's filter redirects to, or 0.
func redirectsTo(r classifier.Record) int {
	if r.Forward {
		return 0
	}
	return r.IFB
}

// before reports whether the running kernel is older. Distribution kernels with backports also
// work with the method for older kernels.
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
