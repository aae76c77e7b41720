package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// ovs-vswitchd sends what all its ports send by one packet socket, and receives by one of each port,
// with the kernel's default buffers of 212,992 bytes. A frame in the queue of a link counts as the
// socket's until it has left, with 2,304 bytes: 92 frames in the queue of one slow link, and no port of
// any switch can send. The defaults (net.core.wmem_default) belong to the machine, so the lab changes
// the sockets themselves.

// sendQueue holds the frames of all queues of a lab at once, and receiveQueue 50 ms of 300 Mbit/s.
const (
	sendQueue    = 256 << 20
	receiveQueue = 4 << 20
)

// firstFrame is an Ethernet frame of no protocol, from no host: to the group of nearest bridges, which
// is forwarded by none, with an EtherType for experiments (IEEE 802, 88B5).
const firstFrame = "0180c200000e" + "000000000000" + "88b5" +
	"00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"

// enlargeQueues enlarges the buffers of ovs-vswitchd's packet sockets. It opens the one for sending
// with its first frame, which is therefore sent to a node.
func (o *ovs) enlargeQueues(ctx context.Context, t *Topology) error {
	is := t.isSwitch()
	for name, ports := range t.ports() {
		for _, p := range ports {
			if is(p.Peer) {
				continue
			}
			packet := fmt.Sprintf("in_port=LOCAL,packet=%s,actions=output:%d", firstFrame, p.Number)
			if _, err := o.run(ctx, "ovs-ofctl", "--protocols=OpenFlow10,OpenFlow11,OpenFlow12,OpenFlow13,OpenFlow14,OpenFlow15", "packet-out", name, packet); err != nil {
				return err
			}
			return enlargePacketSockets(o.vswitchd.Process.Pid)
		}
	}
	return nil // there are only switches
}

// enlargePacketSockets sets the buffers of another process's packet sockets.
func enlargePacketSockets(pid int) error {
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("cannot open process %d: %w", pid, err)
	}
	defer unix.Close(process)
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return err
	}
	sending := false
	for _, f := range files {
		fd, err := strconv.Atoi(f.Name())
		if err != nil {
			return err
		}
		found, err := enlarge(process, fd)
		if err != nil {
			return fmt.Errorf("cannot enlarge the queue of a packet socket: %w", permitted(err))
		}
		sending = sending || found
	}
	if !sending {
		return fmt.Errorf("process %d has no packet socket for sending", pid)
	}
	return nil
}

// enlarge sets the buffers of a file of a process, if that is a packet socket, and reports whether it
// is one for sending to every device.
func enlarge(process, fd int) (sending bool, err error) {
	own, err := unix.PidfdGetfd(process, fd, 0)
	if errors.Is(err, unix.EBADF) { // closed meanwhile
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer unix.Close(own)
	if family, err := unix.GetsockoptInt(own, unix.SOL_SOCKET, unix.SO_DOMAIN); err != nil || family != unix.AF_PACKET {
		return false, nil // another file or socket
	}
	at, err := unix.Getsockname(own)
	if err != nil {
		return false, err
	}
	ll, ok := at.(*unix.SockaddrLinklayer)
	return ok && ll.Ifindex == 0, errors.Join(
		unix.SetsockoptInt(own, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, sendQueue),
		unix.SetsockoptInt(own, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveQueue),
	)
}
