package attach

import (
	"github.com/cilium/ebpf"

	"headgate.dev/headgate/internal/nl"
)

// AttachRedirecting attaches a program to a hook, with an action of the filter that redirects
// to the device with index to. The program itself does not redirect, for two reasons. Before
// Linux 6.4, an IFB does not accept packets that a program redirected, because the kernel marks
// them as redirected (net/core/filter.c, __bpf_tx_skb; commit 59e498a3289f). Later kernels drop
// packets that a program redirects from a device without a link header to a device with a link
// header, such as an IFB (__bpf_redirect_common: the MAC header is not before the network
// header). mirred has worked in all versions (drivers/net/ifb.c, ifb_xmit).
func (d *Device) AttachRedirecting(b *nl.Batch, side int, p *ebpf.Program, to int) {
	b.SetRedirectingFilter(d.Index(), hooks[side], filterPref, p.FD(), filterName, to)
}
