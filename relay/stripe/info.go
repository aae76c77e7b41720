package stripe

import "slices"

// StreamInfo describes a stream.
type StreamInfo struct {
	Estimate
	// Sent and Received are bytes of connections: those that were acknowledged, and those that arrived.
	Sent, Received uint64
	// Unacknowledged is how many bytes of connections were sent and not acknowledged.
	Unacknowledged int
	// Suspect streams make no progress, and Retired ones get no more frames.
	Suspect, Retired bool
}

// Stream describes a stream; ok is false if there is none with this number.
func (s *Session) Stream(number uint32) (i StreamInfo, ok bool) {
	st := s.streams[number]
	if st == nil {
		return i, false
	}
	i = StreamInfo{Estimate: st.estimate, Sent: st.sentBytes, Received: st.receivedBytes, Suspect: st.suspect, Retired: st.retired}
	for _, f := range st.sent {
		if f.chunk != nil {
			i.Unacknowledged += len(f.Payload)
		}
	}
	return i, true
}

// SetPath names the path of a stream, by which ConnInfo.Paths counts.
func (s *Session) SetPath(number uint32, path string) {
	if st := s.streams[number]; st != nil {
		st.path = path
	}
}

// ConnInfo describes a connection.
type ConnInfo struct {
	State ConnState
	// Sent is how many bytes were written to the connection, and Received how many were read from it.
	Sent, Received uint64
	// Waiting are the bytes of Sent that no stream has taken yet, and Unacknowledged those that one has taken.
	Waiting, Unacknowledged int
	// Unread are the bytes that arrived in order and were not read yet, and Reordering those that wait for earlier
	// bytes.
	Unread, Reordering int
	// Paths are the bytes by path, in the order in which the paths were first used.
	Paths []PathBytes
}

// ConnState is the state of a connection.
type ConnState string

// The states of connections.
const (
	// Opening: the other agent has not answered yet.
	Opening ConnState = "opening"
	// Established: both directions carry data.
	Established ConnState = "open"
	// Closing: one direction has ended, or both have and not all was acknowledged.
	Closing ConnState = "closing"
	// Ended: both directions have ended.
	Ended ConnState = "ended"
)

// PathBytes are the bytes of a connection that the streams of a path have carried: those that were acknowledged, and
// those that arrived. What was sent on two streams counts on both.
type PathBytes struct {
	Path     string `json:"path"`
	Sent     uint64 `json:"sent_bytes"`
	Received uint64 `json:"received_bytes"`
}

// Info describes the connection, also after it has ended.
func (c *Conn) Info() ConnInfo {
	i := ConnInfo{State: Established, Sent: c.offset, Received: c.in.next, Waiting: c.pendingBytes, Paths: slices.Clone(c.paths)}
	switch {
	case c.state == ended:
		i.State = Ended
		return i
	case c.state != open:
		i.State = Opening
	case c.closed || c.in.ended:
		i.State = Closing
	}
	for _, k := range c.unacked {
		if !k.acked {
			i.Unacknowledged += len(k.data)
		}
	}
	i.Reordering = c.in.blocked()
	i.Unread = c.in.bytes - i.Reordering
	return i
}

// count adds bytes that a stream of a path has carried.
func (c *Conn) count(path string, sent, received int) {
	n := slices.IndexFunc(c.paths, func(p PathBytes) bool { return p.Path == path })
	if n < 0 {
		n = len(c.paths)
		c.paths = append(c.paths, PathBytes{Path: path})
	}
	c.paths[n].Sent += uint64(sent)
	c.paths[n].Received += uint64(received)
}
