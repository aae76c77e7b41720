package nl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Messages and attributes of nf_tables (uapi/linux/netfilter/nf_tables.h).
const (
	nftChainTable = 1
	nftChainName  = 3
	nftChainHook  = 4

	nftFlowtableTable = 1
	nftFlowtableName  = 2
	nftFlowtableHook  = 3
	nftFlowtableFlags = 7

	nftHookNum         = 1
	nftHookPriority    = 2
	nftHookDevice      = 3
	nftHookDevices     = 4
	nftFlowHookDevices = 3

	nftDeviceName   = 1
	nftDevicePrefix = 2 // from Linux 6.18

	nftFlowtableOffload = 1 // NFT_FLOWTABLE_HW_OFFLOAD
)

// Numbers of hooks (uapi/linux/netfilter.h).
const (
	netdevIngress = 0 // NF_NETDEV_INGRESS
	inetIngress   = 5 // NF_INET_INGRESS, from Linux 5.10
)

// nfGenMsg is the size of the header of netfilter messages (struct nfgenmsg).
const nfGenMsg = 4

// Families of nf_tables that have an ingress hook, with their names in nft.
var families = map[uint8]string{unix.NFPROTO_NETDEV: "netdev", unix.NFPROTO_INET: "inet", unix.NFPROTO_IPV4: "ip", unix.NFPROTO_IPV6: "ip6"}

// IngressHook is a chain or flowtable of nf_tables that processes the packets of devices right
// after the traffic-control filters.
type IngressHook struct {
	Flowtable bool
	Family    string // "netdev"
	Table     string
	Name      string
	Priority  int32 // hooks run in ascending order of priority
	Rules     uint32
	Devices   []DeviceName
	// Offload means that the flowtable is offloaded to the network card, whose packets the kernel
	// does not see.
	Offload bool
}

// DeviceName is a device name, or a prefix of device names, in a hook.
type DeviceName struct {
	Name   string
	Prefix bool
}

// On reports whether a hook is on a device.
func (h IngressHook) On(dev string) bool {
	for _, d := range h.Devices {
		if d.Name == dev || d.Prefix && strings.HasPrefix(dev, d.Name) {
			return true
		}
	}
	return false
}

// OpenNetfilter opens a netfilter socket in the network namespace of the calling thread. It returns
// ErrNoNetfilter if the kernel has no netfilter.
func OpenNetfilter() (*Conn, error) {
	c, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if errors.Is(err, syscall.EPROTONOSUPPORT) {
		return nil, ErrNoNetfilter
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open a netfilter socket: %w", err)
	}
	_ = c.SetOption(netlink.ExtendedAcknowledge, true) // for error messages only
	return &Conn{c}, nil
}

// ErrNoNetfilter means that the kernel has no netfilter.
var ErrNoNetfilter = errors.New("this kernel has no netfilter (CONFIG_NETFILTER_NETLINK)")

// IngressHooks lists the base chains and flowtables at the ingress of devices in the network
// namespace of the calling thread. It returns none if the kernel has no nf_tables. The query loads
// the kernel module of nf_tables, if there is one, as "nft list ruleset" does.
func IngressHooks() ([]IngressHook, error) {
	c, err := OpenNetfilter()
	if errors.Is(err, ErrNoNetfilter) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer c.Close()
	chains, err := c.hooks("chains of nftables", unix.NFT_MSG_GETCHAIN, parseChain)
	if err != nil {
		return nil, err
	}
	flowtables, err := c.hooks("flowtables of nftables", unix.NFT_MSG_GETFLOWTABLE, parseFlowtable)
	return append(chains, flowtables...), err
}

// NetdevTables lists the names of the nf_tables tables of the family netdev.
func NetdevTables() (out []string, err error) {
	c, err := OpenNetfilter()
	if errors.Is(err, ErrNoNetfilter) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer c.Close()
	answers, err := c.DumpNFTables("tables of nftables", unix.NFT_MSG_GETTABLE, unix.NFPROTO_NETDEV)
	for _, a := range answers {
		_, ad, err := netfilterAttributes(a)
		if err != nil {
			return nil, fmt.Errorf("cannot parse tables of nftables: %w", err)
		}
		for ad.Next() {
			if ad.Type() == nftTableName {
				out = append(out, ad.String())
			}
		}
	}
	return out, err
}

// DumpNFTables lists the nf_tables objects of a family, each with the header of a netfilter message
// (struct nfgenmsg). It returns none if the kernel does not support the request
// (net/netfilter/nfnetlink.c, nfnetlink_rcv_msg).
func (c *Conn) DumpNFTables(what string, message uint16, family uint8) ([][]byte, error) {
	answers, err := c.Dump(what, unix.NFNL_SUBSYS_NFTABLES<<8|message, []byte{family, unix.NFNETLINK_V0, 0, 0})
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EOPNOTSUPP) {
		return nil, nil
	}
	return answers, err
}

func (c *Conn) hooks(what string, message uint16, parse func([]byte) (IngressHook, bool, error)) (out []IngressHook, err error) {
	for _, family := range []uint8{unix.NFPROTO_NETDEV, unix.NFPROTO_INET, unix.NFPROTO_IPV4, unix.NFPROTO_IPV6} {
		if message == unix.NFT_MSG_GETCHAIN && family != unix.NFPROTO_NETDEV && family != unix.NFPROTO_INET {
			continue // the family has no ingress hook
		}
		answers, err := c.DumpNFTables(what, message, family)
		if err != nil {
			return nil, err
		}
		for _, a := range answers {
			h, ok, err := parse(a)
			if err != nil {
				return nil, fmt.Errorf("cannot parse %s: %w", what, err)
			}
			if ok {
				out = append(out, h)
			}
		}
	}
	return out, nil
}

// netfilterAttributes returns a decoder for the attributes of a netfilter message.
func netfilterAttributes(b []byte) (family string, ad *netlink.AttributeDecoder, err error) {
	if len(b) < nfGenMsg {
		return "", nil, fmt.Errorf("netfilter message of %d bytes is too short", len(b))
	}
	if ad, err = netlink.NewAttributeDecoder(b[nfGenMsg:]); err == nil {
		ad.ByteOrder = binary.BigEndian
	}
	return families[b[0]], ad, err
}

// parseChain parses a chain; ok is false if the chain is not at an ingress hook.
func parseChain(b []byte) (h IngressHook, ok bool, err error) {
	family, ad, err := netfilterAttributes(b)
	if err != nil {
		return h, false, err
	}
	h.Family = family
	hook := uint32(netdevIngress)
	if family == "inet" {
		hook = inetIngress
	}
	for ad.Next() {
		switch ad.Type() {
		case nftChainTable:
			h.Table = ad.String()
		case nftChainName:
			h.Name = ad.String()
		case nftChainUse:
			h.Rules = ad.Uint32()
		case nftChainHook:
			ad.Nested(func(ad *netlink.AttributeDecoder) error {
				num, err := h.decode(ad, nftHookDevices)
				ok = num == hook
				return err
			})
		}
	}
	return h, ok, ad.Err()
}

// parseFlowtable parses a flowtable. Flowtables are always at the ingress hook.
func parseFlowtable(b []byte) (h IngressHook, ok bool, err error) {
	family, ad, err := netfilterAttributes(b)
	if err != nil {
		return h, false, err
	}
	h.Family, h.Flowtable = family, true
	for ad.Next() {
		switch ad.Type() {
		case nftFlowtableTable:
			h.Table = ad.String()
		case nftFlowtableName:
			h.Name = ad.String()
		case nftFlowtableHook:
			ad.Nested(func(ad *netlink.AttributeDecoder) error {
				_, err := h.decode(ad, nftFlowHookDevices)
				return err
			})
		case nftFlowtableFlags:
			h.Offload = ad.Uint32()&nftFlowtableOffload != 0
		}
	}
	return h, true, ad.Err()
}

// decode parses the hook of a chain or flowtable.
func (h *IngressHook) decode(ad *netlink.AttributeDecoder, list uint16) (num uint32, err error) {
	ad.ByteOrder = binary.BigEndian
	for ad.Next() {
		switch ad.Type() {
		case nftHookNum:
			num = ad.Uint32()
		case nftHookPriority:
			h.Priority = int32(ad.Uint32())
		case list:
			ad.Nested(func(ad *netlink.AttributeDecoder) error {
				for ad.Next() {
					if ad.Type() == nftDeviceName || ad.Type() == nftDevicePrefix {
						h.Devices = append(h.Devices, deviceName(ad.Type(), ad.Bytes()))
					}
				}
				return ad.Err()
			})
		case nftHookDevice:
			// The only device; newer kernels also report a list with this one.
			if len(h.Devices) == 0 {
				h.Devices = []DeviceName{{Name: ad.String()}}
			}
		}
	}
	return num, ad.Err()
}

// deviceName parses a name. Linux 6.16 and 6.17 report a prefix as a name that does not end in a
// zero byte (net/netfilter/nf_tables_api.c, nft_dump_basechain_hook).
func deviceName(kind uint16, b []byte) DeviceName {
	text, whole := strings.CutSuffix(string(b), "\x00")
	return DeviceName{text, kind == nftDevicePrefix || !whole}
}
