package lab

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// destroySockets closes every TCP connection in the calling thread's namespace. A connection whose
// program has exited, but whose data were not acknowledged, would keep the namespace alive until it
// times out, which takes minutes. Without SOCK_DESTROY in the kernel the connections stay. Listening sockets
// end with their programs, and the kernel refuses to destroy those of MPTCP, which is what Go's listen with
// (EINVAL: tcp_abort_override, net/mptcp/subflow.c). One connection that cannot be closed keeps no other open.
func destroySockets() error {
	var failed error
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		sockets, err := netlink.SocketDiagTCP(family)
		if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
			return fmt.Errorf("list TCP sockets: %w", err)
		}
		for _, s := range sockets {
			if s.State == netlink.TCP_LISTEN {
				continue
			}
			req := nl.NewNetlinkRequest(unix.SOCK_DESTROY, unix.NLM_F_ACK)
			req.AddData(diagRequest{s})
			_, err := req.Execute(unix.NETLINK_INET_DIAG, 0)
			if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EOPNOTSUPP) {
				failed = fmt.Errorf("cannot close a TCP connection: %w", err)
			}
		}
	}
	return failed
}

// diagRequest is struct inet_diag_req_v2 (linux/inet_diag.h) for one socket.
type diagRequest struct{ *netlink.Socket }

func (diagRequest) Len() int { return 56 }

func (r diagRequest) Serialize() []byte {
	b := make([]byte, r.Len())
	b[0], b[1] = r.Family, unix.IPPROTO_TCP
	binary.NativeEndian.PutUint32(b[4:], 1<<r.State)
	binary.BigEndian.PutUint16(b[8:], r.ID.SourcePort)
	binary.BigEndian.PutUint16(b[10:], r.ID.DestinationPort)
	src, dst := r.ID.Source.To16(), r.ID.Destination.To16()
	if r.Family == unix.AF_INET {
		src, dst = r.ID.Source.To4(), r.ID.Destination.To4()
	}
	copy(b[12:28], src)
	copy(b[28:44], dst)
	binary.NativeEndian.PutUint32(b[44:], r.ID.Interface)
	binary.NativeEndian.PutUint32(b[48:], r.ID.Cookie[0])
	binary.NativeEndian.PutUint32(b[52:], r.ID.Cookie[1])
	return b
}
