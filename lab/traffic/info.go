package traffic

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// connState is the kernel's state of a connection, summed over the subflows of a multipath one.
type connState struct {
	retransmits, deliveredCE uint64 // segments
	duplicates               uint64 // segments that the other end reported as received twice (RFC 2883)
	dataOut, dataIn          uint32 // segments with data: sent (including retransmissions), and received
	cwnd                     uint32 // segments, of all subflows together
	srtt                     uint32 // us, the mean of the subflows
	subflows                 int    // 0 without multipath
	ecn, sack                bool   // negotiated, by all subflows
	mss, mtu                 int    // of the first subflow
}

// From linux/tcp.h and linux/mptcp.h.
const (
	infoSACK     = 2 // TCPI_OPT_SACK
	infoECN      = 8 // TCPI_OPT_ECN
	mptcpTCPInfo = 2 // MPTCP_TCPINFO
	maxSubflows  = 8 // above the limit of MPTCP_PM_ADDR_MAX
)

// stateOf reads TCP_INFO. For a multipath socket that fell back to TCP it is that of the TCP
// connection.
func stateOf(fd int, multipath bool) (connState, error) {
	if multipath {
		if infos := subflowInfos(fd); len(infos) > 0 {
			s := sumInfos(infos)
			s.subflows = len(infos)
			return s, nil
		}
	}
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return connState{}, err
	}
	return sumInfos([]unix.TCPInfo{*info}), nil
}

func sumInfos(infos []unix.TCPInfo) connState {
	s := connState{ecn: true, sack: true, mss: int(infos[0].Snd_mss), mtu: int(infos[0].Pmtu)}
	var srtt uint64
	for _, i := range infos {
		s.retransmits += uint64(i.Total_retrans)
		s.deliveredCE += uint64(i.Delivered_ce)
		s.duplicates += uint64(i.Dsack_dups)
		s.dataOut += i.Data_segs_out
		s.dataIn += i.Data_segs_in
		s.cwnd += i.Snd_cwnd
		srtt += uint64(i.Rtt)
		s.ecn = s.ecn && i.Options&infoECN != 0
		s.sack = s.sack && i.Options&infoSACK != 0
	}
	s.srtt = uint32(srtt / uint64(len(infos)))
	return s
}

// subflowInfos returns the TCP_INFO of each subflow; none if the socket is not multipath, or fell
// back.
func subflowInfos(fd int) []unix.TCPInfo {
	// struct mptcp_subflow_data of linux/mptcp.h, followed by the data.
	var q struct {
		sizeSubflowData, numSubflows, sizeKernel, sizeUser uint32
		infos                                              [maxSubflows]unix.TCPInfo
	}
	q.sizeSubflowData = 16
	q.sizeUser = uint32(unsafe.Sizeof(q.infos[0]))
	size := uint32(unsafe.Sizeof(q))
	_, _, e := unix.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_MPTCP, mptcpTCPInfo,
		uintptr(unsafe.Pointer(&q)), uintptr(unsafe.Pointer(&size)), 0)
	if e != 0 {
		return nil
	}
	return q.infos[:min(int(q.numSubflows), maxSubflows)]
}
