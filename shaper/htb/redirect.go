package htb

import (
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"headgate/internal/nl"
)

// attachFilter puts a side's classifier on its hook, which redirects to a device
// unless ifb is 0. A redirect by the program itself does not reach an IFB before
// Linux 6.4, nor from a device without a link header (attach.AttachRedirecting).
func (k *kernel) attachFilter(b *nl.Batch, i int, p *ebpf.Program, ifb int) {
	header, err := k.LinkHeader() // an error has ended the apply before this
	if ifb != 0 && (before(6, 4) || err == nil && header == 0) {
		k.AttachRedirecting(b, i, p, ifb)
		return
	}
	k.Attach(b, i, p)
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
