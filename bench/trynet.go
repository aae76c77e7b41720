package bench

import (
	"errors"
	"runtime"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"headgate.dev/headgate/internal/ethtool"
)

// inFreshNamespace calls fn in a temporary network namespace. Without the privilege to create one it
// does nothing.
func inFreshNamespace(fn func()) {
	runtime.LockOSThread()
	home, err := netns.Get()
	if err != nil {
		runtime.UnlockOSThread()
		return
	}
	defer home.Close()
	fresh, err := netns.New() // enters it
	if err != nil {
		runtime.UnlockOSThread()
		return
	}
	defer func() {
		fresh.Close()
		if netns.Set(home) == nil { // otherwise the thread ends with this goroutine
			runtime.UnlockOSThread()
		}
	}()
	fn()
}

// qdiscs returns which of the kinds the kernel has, by adding each to a device in the calling thread's
// namespace.
func qdiscs(kinds []string) (have []string) {
	link, err := addLink(func(a netlink.LinkAttrs) netlink.Link { return &netlink.Ifb{LinkAttrs: a} })
	if err != nil {
		return nil
	}
	for _, kind := range kinds {
		q := &netlink.GenericQdisc{QdiscType: kind, QdiscAttrs: netlink.QdiscAttrs{
			LinkIndex: link.Attrs().Index, Parent: netlink.HANDLE_ROOT, Handle: netlink.MakeHandle(1, 0),
		}}
		// With other errors than ENOENT the kind exists and requires options.
		if err := netlink.QdiscAdd(q); !errors.Is(err, syscall.ENOENT) {
			have = append(have, kind)
			_ = netlink.QdiscDel(q)
		}
	}
	_ = netlink.LinkDel(link)
	return have
}

// vethOffloads creates a veth device in the calling thread's namespace and returns the offloads that
// are on.
func vethOffloads() []string {
	link, err := addLink(func(a netlink.LinkAttrs) netlink.Link {
		return &netlink.Veth{LinkAttrs: a, PeerName: a.Name + "p"}
	})
	if err != nil {
		return nil
	}
	defer func() { _ = netlink.LinkDel(link) }()
	on, _ := Offloads(link.Attrs().Name)
	return on
}

func addLink(kind func(netlink.LinkAttrs) netlink.Link) (netlink.Link, error) {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "try0"
	if err := netlink.LinkAdd(kind(attrs)); err != nil {
		return nil, err
	}
	return netlink.LinkByName(attrs.Name)
}

// offloads are those that change how many packets a path carries and where checksums are computed, by
// the names of ethtool -k.
var offloads = []struct {
	ask  uint32
	name string
}{
	{unix.ETHTOOL_GRXCSUM, "rx-checksumming"}, {unix.ETHTOOL_GTXCSUM, "tx-checksumming"}, {unix.ETHTOOL_GSG, "scatter-gather"},
	{unix.ETHTOOL_GTSO, "tcp-segmentation-offload"}, {unix.ETHTOOL_GGSO, "generic-segmentation-offload"}, {unix.ETHTOOL_GGRO, "generic-receive-offload"},
}

// Offloads returns those that are on for a device of the calling thread's namespace.
func Offloads(dev string) ([]string, error) {
	on := []string{}
	for _, o := range offloads {
		value, err := ethtool.Get(dev, o.ask)
		if err != nil {
			return nil, err
		}
		if value != 0 {
			on = append(on, o.name)
		}
	}
	return on, nil
}
