package nl

import (
	"encoding/binary"
	"reflect"
	"testing"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// hookMessage returns a dumped chain or flowtable.
func hookMessage(family uint8, list uint16, attrs func(*netlink.AttributeEncoder), num, priority uint32, devices ...[]byte) []byte {
	ae := netlink.NewAttributeEncoder()
	ae.ByteOrder = binary.BigEndian
	attrs(ae)
	hook := uint16(nftChainHook)
	if list == nftFlowHookDevices {
		hook = nftFlowtableHook
	}
	ae.Nested(hook, func(ae *netlink.AttributeEncoder) error {
		ae.ByteOrder = binary.BigEndian
		ae.Uint32(nftHookNum, num)
		ae.Uint32(nftHookPriority, priority)
		ae.Nested(list, func(ae *netlink.AttributeEncoder) error {
			for _, d := range devices {
				ae.Bytes(nftDeviceName, d)
			}
			return nil
		})
		return nil
	})
	b, err := ae.Encode()
	if err != nil {
		panic(err)
	}
	return append([]byte{family, 0, 0, 0}, b...)
}

func chainNames(ae *netlink.AttributeEncoder) {
	ae.String(nftChainTable, "fw")
	ae.String(nftChainName, "pre")
}

func flowtableNames(ae *netlink.AttributeEncoder) {
	ae.String(nftFlowtableTable, "fw")
	ae.String(nftFlowtableName, "fast")
	ae.Uint32(nftFlowtableFlags, nftFlowtableOffload)
}

func TestParseHooks(t *testing.T) {
	const minus10 = 1<<32 - 10
	eth0, prefix := []byte("eth0\x00"), []byte("ppp")
	for _, c := range []struct {
		name    string
		message []byte
		parse   func([]byte) (IngressHook, bool, error)
		want    IngressHook
		ingress bool
	}{
		{"chain", hookMessage(unix.NFPROTO_NETDEV, nftHookDevices, chainNames, netdevIngress, minus10, eth0), parseChain,
			IngressHook{Family: "netdev", Table: "fw", Name: "pre", Priority: -10, Devices: []DeviceName{{Name: "eth0"}}}, true},
		{"chain at egress", hookMessage(unix.NFPROTO_NETDEV, nftHookDevices, chainNames, 1, 0, eth0), parseChain, IngressHook{}, false},
		{"inet chain", hookMessage(unix.NFPROTO_INET, nftHookDevices, chainNames, inetIngress, 0, prefix), parseChain,
			IngressHook{Family: "inet", Table: "fw", Name: "pre", Devices: []DeviceName{{Name: "ppp", Prefix: true}}}, true},
		{"inet chain at prerouting", hookMessage(unix.NFPROTO_INET, nftHookDevices, chainNames, 0, 0), parseChain, IngressHook{}, false},
		{"flowtable", hookMessage(unix.NFPROTO_IPV6, nftFlowHookDevices, flowtableNames, 0, 5, eth0, prefix), parseFlowtable,
			IngressHook{Family: "ip6", Table: "fw", Name: "fast", Flowtable: true, Offload: true, Priority: 5, Devices: []DeviceName{{Name: "eth0"}, {Name: "ppp", Prefix: true}}}, true},
	} {
		got, ok, err := c.parse(c.message)
		if err != nil || ok != c.ingress || ok && !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v, %v", c.name, got, ok, err)
		}
	}
	h := IngressHook{Devices: []DeviceName{{Name: "eth0"}, {Name: "ppp", Prefix: true}}}
	for dev, want := range map[string]bool{"eth0": true, "eth01": false, "ppp7": true, "pp": false} {
		if h.On(dev) != want {
			t.Errorf("on %s: %v", dev, !want)
		}
	}
}

// FuzzParseHook checks that no message causes a panic in a parser.
func FuzzParseHook(f *testing.F) {
	f.Add(hookMessage(unix.NFPROTO_NETDEV, nftHookDevices, chainNames, 0, 0, []byte("eth0\x00")))
	f.Add(hookMessage(unix.NFPROTO_IPV6, nftFlowHookDevices, flowtableNames, 0, 5, []byte("p")))
	f.Fuzz(func(_ *testing.T, message []byte) {
		_, _, _ = parseChain(message)
		_, _, _ = parseFlowtable(message)
	})
}

func BenchmarkIngressHooks(b *testing.B) {
	for b.Loop() {
		if _, err := IngressHooks(); err != nil {
			b.Fatal(err)
		}
	}
}
