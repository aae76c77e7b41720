package htb

import (
	"fmt"

	"golang.org/x/sys/unix"

	"headgate/internal/nl"
	"headgate/shaper/classifier"
)

// attachFilter puts a side's classifier on its hook. Before Linux 6.4 a redirect by
// the program itself does not reach an IFB (attach.AttachRedirecting).
func (k *kernel) attachFilter(b *nl.Batch, i int, p *classifier.Program) {
	if p.Record.IFB != 0 && before(6, 4) {
		k.AttachRedirecting(b, i, p.Program, p.Record.IFB)
		return
	}
	k.Attach(b, i, p.Program)
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
