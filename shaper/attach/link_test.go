package attach

import (
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

func TestLinkHeader(t *testing.T) {
	const unreadable = 99
	for kind, want := range map[uint16]uint32{
		unix.ARPHRD_ETHER: 14, unix.ARPHRD_LOOPBACK: 14,
		unix.ARPHRD_NONE: 0, unix.ARPHRD_RAWIP: 0, unix.ARPHRD_PPP: 0, unix.ARPHRD_TUNNEL: 0,
		unix.ARPHRD_TUNNEL6: 0, unix.ARPHRD_SIT: 0, unix.ARPHRD_IPGRE: 0, unix.ARPHRD_IP6GRE: 0,
		unix.ARPHRD_INFINIBAND: unreadable, unix.ARPHRD_HDLC: unreadable, unix.ARPHRD_6LOWPAN: unreadable,
	} {
		// The name that the library gives to the kernel's type.
		info := nl.IfInfomsg{IfInfomsg: unix.IfInfomsg{Type: kind}}
		d := Device{Link: &netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Name: "wwan0", EncapType: info.EncapType()}}}
		got, err := d.LinkHeader()
		if want == unreadable {
			if err == nil || !strings.Contains(err.Error(), "wwan0") || !strings.Contains(err.Error(), info.EncapType()) {
				t.Errorf("%s: %d, %v", info.EncapType(), got, err)
			}
			continue
		}
		if got != want || err != nil {
			t.Errorf("%s: %d, %v; want %d", info.EncapType(), got, err, want)
		}
	}
}
