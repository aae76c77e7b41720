package attach

import "fmt"

// linkHeaders are how many bytes come before the IP header on the links whose
// packets can be read, by the library's name of the link (ARPHRD_…,
// uapi/linux/if_arp.h; it names what it does not know by its number).
var linkHeaders = map[string]uint32{
	"ether":    14,
	"loopback": 14,
	// Packets as IP makes them: what goes before is put there by the driver, behind
	// the hooks.
	"none":       0, // tun, WireGuard
	"unknown519": 0, // ARPHRD_RAWIP: mobile modems
	"ppp":        0,
	"ipip":       0,
	"tunnel6":    0,
	"sit":        0,
	"gre":        0,
	"unknown823": 0, // ARPHRD_IP6GRE
}

// LinkHeader is how many bytes come before the IP header.
func (d *Device) LinkHeader() (uint32, error) {
	link := d.Link.Attrs().EncapType
	n, ok := linkHeaders[link]
	if !ok {
		return 0, fmt.Errorf("packets of device %s have a link header that Headgate cannot read (%s): divide an Ethernet, PPP or IP tunnel device on their way instead", d.Name(), link)
	}
	return n, nil
}
