package attach

import (
	"github.com/cilium/ebpf"

	"headgate/internal/nl"
)

// AttachRedirecting puts a program on a hook whose redirect to a device is done by
// an action of the filter, whatever device the program itself names. IFB takes no
// packet that a program redirected before Linux 6.4, which marks them as
// redirected (net/core/filter.c, __bpf_tx_skb; commit 59e498a3289f); and later ones
// drop what a program redirects from a device without a link header to one that has
// one, as an IFB does (__bpf_redirect_common: a packet whose MAC header is not before
// its network header). mirred always did (drivers/net/ifb.c, ifb_xmit).
func (d *Device) AttachRedirecting(b *nl.Batch, side int, p *ebpf.Program, to int) {
	b.SetRedirectingFilter(d.Index(), hooks[side], filterPref, p.FD(), filterName, to)
}
