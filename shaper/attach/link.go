package attach

import "fmt"

// linkHeaders maps supported link types to the number of bytes before the IP header. The keys
// are the library's names of the types (ARPHRD_…, uapi/linux/if_arp.h; types that it does not
// know are named by number).
var linkHeaders = map[string]uint32{
	"ether":    14,
	"loopback": 14,
	// Packets start with the IP header: the driver adds lower headers after the hooks.
	"none":       0, // tun, WireGuard
	"unknown519": 0, // ARPHRD_RAWIP: mobile modems
	"ppp":        0,
	"ipip":       0,
	"tunnel6":    0,
	"sit":        0,
	"gre":        0,
	"unknown823": 0, // ARPHRD_IP6GRE
}

// LinkHeader returns the number of bytes before the IP header.
func (d *Device) LinkHeader() (uint32, error) {
	link := d.Link.Attrs().EncapType
	n, ok := linkHeaders[link]
	if !ok {
		return 0, fmt.Errorf("device %s has an unsupported link type (%s): configure an Ethernet, PPP or IP tunnel device on the path of its packets instead", d.Name(), link)
	}
	return n, nil
}
