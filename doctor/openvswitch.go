package doctor

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"headgate.dev/headgate/fabric/ovsdb"
)

// ovsTimeout bounds the reading of Open vSwitch's database, which takes milliseconds.
const ovsTimeout = 5 * time.Second

// vswitchd is the program of Debian's package openvswitch-switch.
const vswitchd = "/usr/sbin/ovs-vswitchd"

// fabric checks the Open vSwitch of a database.
func fabric(address, program string) []Check {
	ctx, cancel := context.WithTimeout(context.Background(), ovsTimeout)
	defer cancel()
	s, err := readSwitches(ctx, address)
	if err == nil {
		return s.checks()
	}
	c := Check{About: Fabric, Name: "Open vSwitch", State: Unknown, Found: err.Error(), Meaning: "its bridges can be switches of a network"}
	_, missing := exec.LookPath(program)
	switch {
	case forbidden(err):
		c.Found, c.Remedy = "not permitted", "run doctor as root"
	case !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED):
		c.Remedy = "see /var/log/openvswitch/ovsdb-server.log"
	case missing != nil:
		c.State, c.Found, c.Meaning = OK, "not installed", "only needed on a machine that is a switch of a network"
	default:
		c.State, c.Found, c.Meaning, c.Remedy = Missing, "not running", "its bridges do not forward", "systemctl start openvswitch-switch"
	}
	return []Check{c}
}

func readSwitches(ctx context.Context, address string) (s switches, err error) {
	session, err := ovsdb.Dial(ctx, address, nil)
	if err != nil {
		return s, err
	}
	defer session.Close()
	if s.running, err = session.Running(ctx); err != nil {
		return s, err
	}
	if s.Snapshot, err = session.Snapshot(ctx); err != nil {
		return s, err
	}
	s.offloaded = map[string]string{}
	for _, b := range s.Bridges {
		for _, p := range b.Ports {
			if dev := offloadedPeer(p.Name); b.DatapathType == "netdev" && dev != "" {
				s.offloaded[p.Name] = dev
			}
		}
	}
	return s, nil
}

// offloadedPeer returns the other end of a veth pair, if it is in this namespace and leaves checksums to hardware.
func offloadedPeer(port string) string {
	l, err := netlink.LinkByName(port)
	if err != nil || l.Type() != "veth" || l.Attrs().NetNsID >= 0 {
		return ""
	}
	peer, err := netlink.LinkByIndex(l.Attrs().ParentIndex)
	if err != nil {
		return ""
	}
	e, err := openEthtool(peer.Attrs().Name)
	if err != nil {
		return ""
	}
	defer e.close()
	if on, err := e.value(ethtoolGTXCsum); err != nil || on == 0 {
		return ""
	}
	return peer.Attrs().Name
}
