package lab

import "github.com/vishvananda/netlink"

// Exports for tests outside the package.
type (
	NetemOptions   = netemOptions
	NetemCounts    = netemCounts
	GilbertElliott = gilbertElliott
)

var (
	AddNetem       = addNetem
	ChangeNetem    = changeNetem
	CountNetem     = countNetem
	ReceiveInOrder = receiveInOrder
	KernelHasNetem = func() bool { return kernelHasNetem() }
)

// Link returns the node's device towards peer, and a handle in its namespace.
func (n *Node) Link(peer string) (*netlink.Handle, netlink.Link, error) {
	dev, err := n.Device(peer)
	if err != nil {
		return nil, nil, err
	}
	link, err := n.nl.LinkByName(dev)
	return n.nl, link, err
}

// Holding lists what keeps one of the lab's namespaces.
func (l *Lab) Holding() []string { return holding(l.state.inodes()) }
