package traffic

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// transferrer runs the transfers of a flow's Transfer.
type transferrer struct {
	a              *apps
	f              *flow
	client, server end
	listens        netip.AddrPort
	parts          []int64
	begun          int      // transfers so far
	now            *sending // in progress; nil between two
	done           TransferResult
	took           histogram
	over           bool
}

// sending is one transfer.
type sending struct {
	t       *transferrer
	at      int64                  // ns since the start
	left    int64                  // bytes that the receiver has not yet read
	streams map[netip.AddrPort]int // by the client's address
	conns   []*conn
}

// receiveAtOnce is SO_RCVLOWAT: a receiver is woken for this amount, or the end, not for every packet.
const receiveAtOnce = 128 << 10

func newTransferrer(a *apps, f *flow, from, to end) *transferrer {
	t := &transferrer{a: a, f: f, client: from, server: to, parts: f.Transfer.parts()}
	if f.Download {
		t.client, t.server = to, from
	}
	a.transfers++
	return t
}

func (t *transferrer) open() (err error) {
	t.listens, err = t.a.listen(t.f, t.server, t.accept)
	t.f.to, t.f.from = t.listens, netip.AddrPortFrom(t.client.addr.Addr(), 0)
	if t.f.Download {
		t.f.from, t.f.to = t.f.to, t.f.from
	}
	return err
}

func (t *transferrer) begin() {
	t.a.after(int64(t.f.Start), t.send)
	if t.f.Stop > 0 {
		t.a.after(int64(t.f.Stop), func(int64) { t.stop() })
	}
}

// send starts a transfer.
func (t *transferrer) send(int64) {
	if t.over {
		return
	}
	t.begun++
	s := &sending{t: t, at: t.a.now(), left: int64(t.f.Transfer.Size), streams: map[netip.AddrPort]int{}}
	t.now = s
	for i := range t.parts {
		local, err := t.a.dial(t.f, t.client, t.listens, func(c *conn, err error) {
			switch {
			case t.now != s: // aborted in the meantime
				if c != nil {
					c.abort()
				}
			case err != nil:
				t.failed(err)
			default:
				s.begin(c, i, !t.f.Download)
			}
		})
		if err != nil {
			t.failed(err)
			return
		}
		s.streams[local] = i
	}
}

// accept finds the stream of an accepted socket.
func (t *transferrer) accept(fd int, peer netip.AddrPort) error {
	s := t.now
	i, known := 0, false
	if s != nil {
		i, known = s.streams[peer]
	}
	if !known { // of an aborted transfer
		unix.Close(fd)
		return nil
	}
	c, err := t.a.accepted(t.f, fd)
	if err != nil {
		return err
	}
	s.begin(c, i, t.f.Download)
	return nil
}

// begin starts one end of stream i with its part.
func (s *sending) begin(c *conn, i int, sender bool) {
	s.conns = append(s.conns, c)
	left := s.t.parts[i]
	if sender {
		c.main = true
		c.ready = func(uint32) { s.write(c, &left) }
		c.ready(0)
		return
	}
	c.ready = func(uint32) { s.read(c, &left) }
	// Some kernels do not support this for multipath; the receiver is then woken more often.
	_ = unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_RCVLOWAT, int(min(left, receiveAtOnce)))
	if err := c.want(unix.EPOLLIN); err != nil {
		s.t.failed(err)
	}
}

func (s *sending) write(c *conn, left *int64) {
	if *left == 0 { // an error of the connection, or nothing to do
		_ = c.want(0)
		return
	}
	n, err := c.write(*left)
	*left -= n
	if err == nil {
		if *left > 0 {
			err = c.want(unix.EPOLLOUT)
		} else if err = unix.Shutdown(c.fd, unix.SHUT_WR); err == nil {
			err = c.want(0)
		}
	}
	if err != nil {
		s.t.failed(err)
	}
}

func (s *sending) read(c *conn, left *int64) {
	n, eof, err := c.skip(max(*left, 1))
	*left -= n
	s.left -= n
	switch {
	case s.left == 0:
		s.t.completed()
	case err != nil:
		s.t.failed(err)
	case eof && *left > 0:
		s.t.failed(errors.New("the connection was closed too early"))
	case eof:
		_ = c.want(0)
	}
}

func (t *transferrer) completed() {
	s, now := t.now, t.a.now()
	t.done.Completed = append(t.done.Completed, Completion{float64(s.at) / 1e9, float64(now-s.at) / 1e9})
	t.took.add(now - s.at)
	t.end((*conn).close)
	if t.begun < max(t.f.Transfer.Times, 1) {
		t.a.after(now+int64(t.f.Transfer.Pause), t.send)
		return
	}
	t.finish()
}

// failed aborts a transfer; the next one follows after a pause.
func (t *transferrer) failed(err error) {
	t.done.Failed++
	t.end((*conn).abort)
	t.f.fail(fmt.Errorf("transfer %d: %w", t.begun, err))
	if t.begun < max(t.f.Transfer.Times, 1) {
		t.a.after(t.a.now()+int64(max(t.f.Transfer.Pause, failurePause)), t.send)
		return
	}
	t.finish()
}

// stop is called at the flow's stop.
func (t *transferrer) stop() {
	if t.now != nil {
		t.done.Failed++
		t.end((*conn).abort)
	}
	t.finish()
}

// end closes the transfer's connections.
func (t *transferrer) end(how func(*conn)) {
	for _, c := range t.now.conns {
		how(c)
	}
	t.now = nil
}

func (t *transferrer) finish() {
	if !t.over {
		t.over = true
		t.a.transferOver()
	}
}

func (t *transferrer) interval(iv *Interval) {
	p := &TransferProgress{Completed: uint64(len(t.done.Completed)), Failed: t.done.Failed, ArrivedBytes: t.arrived()}
	if p.Completed > 0 {
		p.LastSeconds = t.done.Completed[p.Completed-1].Seconds
	}
	iv.Transfer = p
}

// arrived returns how much of the transfer in progress has arrived.
func (t *transferrer) arrived() uint64 {
	if t.now == nil {
		return 0
	}
	return uint64(int64(t.f.Transfer.Size) - t.now.left)
}

func (t *transferrer) result(fr *FlowResult) {
	r := t.done
	r.Completed = append([]Completion{}, r.Completed...)
	r.Time = t.took.times()
	r.UnfinishedBytes = t.arrived()
	fr.Transfer = &r
}
