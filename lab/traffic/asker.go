package traffic

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"

	"golang.org/x/sys/unix"
)

// requester runs a flow's Requests: arrivals, the backlog and the askers.
type requester struct {
	a          *apps
	f          *flow
	from, to   end
	server     netip.AddrPort
	rand       *rand.Rand // for arrivals and their sizes
	idle       []*asker   // of an open loop
	askers     []*asker
	waiting    queue
	total      RequestStats
	last       RequestStats // at the end of the last interval
	latency    histogram    // of the whole run
	recent     histogram    // of this interval
	maxBacklog int          // maximum backlog of this interval
}

// question is a request that is due.
type question struct {
	at            int64 // ns since the start
	size, respond int64
}

// asker sends one request after the other on a connection.
type asker struct {
	r       *requester
	rand    *rand.Rand // a user's; nil in an open loop
	c       *conn      // nil without one
	asking  bool
	q       question
	written int64 // bytes of the request
	left    int64 // bytes of the response
}

func newRequester(a *apps, f *flow, from, to end, seed uint64) *requester {
	r := &requester{a: a, f: f, from: from, to: to, rand: newRand(seed, f.Name, "arrivals")}
	spec := f.Requests
	n := spec.Users
	if spec.Rate > 0 {
		if n = spec.Connections; n == 0 {
			n = DefaultConnections
		}
	}
	for i := range n {
		k := &asker{r: r}
		if spec.Users > 0 {
			k.rand = newRand(seed+uint64(i), f.Name, "user")
		} else {
			r.idle = append(r.idle, k)
		}
		r.askers = append(r.askers, k)
	}
	return r
}

func (r *requester) open() (err error) {
	if r.server, err = r.a.listen(r.f, r.to, r.answer); err != nil {
		return err
	}
	r.f.from, r.f.to = netip.AddrPortFrom(r.from.addr.Addr(), 0), r.server
	if r.f.Requests.Reconnect {
		return nil
	}
	for _, k := range r.askers {
		r.a.opening++
		if err := k.connect(func(err error) {
			r.a.opening--
			if err != nil {
				r.f.fail(err)
			}
		}); err != nil {
			return err
		}
	}
	return nil
}

func (r *requester) begin() {
	spec := r.f.Requests
	if spec.Rate > 0 {
		r.a.after(int64(r.f.Start)+r.gap(), r.arrive)
		return
	}
	for _, k := range r.askers {
		r.a.after(int64(r.f.Start)+int64(spec.Think.Draw(k.rand)), k.want)
	}
}

// gap returns the time to the next arrival, exponentially distributed.
func (r *requester) gap() int64 {
	return int64(r.rand.ExpFloat64()/r.f.Requests.Rate*1e9) + 1
}

// over reports whether no more requests are sent.
func (r *requester) over(at int64) bool { return r.f.Stop > 0 && at >= int64(r.f.Stop) }

// draw returns a question with random sizes.
func (r *requester) draw(at int64, from *rand.Rand) question {
	spec := r.f.Requests
	return question{at, max(int64(spec.Request.Draw(from)), MinRequest), max(int64(spec.Response.Draw(from)), 1)}
}

// arrive is a request of an open loop. All its random numbers are drawn here, in the order of arrival,
// so that the outcome of one request does not change the others.
func (r *requester) arrive(at int64) {
	if r.over(at) {
		return
	}
	q := r.draw(at, r.rand)
	r.a.after(at+r.gap(), r.arrive)
	r.total.Arrived++
	bound := r.f.Requests.MaxBacklog
	switch {
	case len(r.idle) > 0:
		k := r.idle[len(r.idle)-1]
		r.idle = r.idle[:len(r.idle)-1]
		k.ask(q)
	case bound > 0 && r.waiting.len() >= bound:
		r.total.Refused++
	default:
		r.waiting.push(q)
		r.maxBacklog = max(r.maxBacklog, r.waiting.len())
	}
}

// want is called when a user's think time is over.
func (k *asker) want(at int64) {
	if k.r.over(at) {
		return
	}
	k.r.total.Arrived++
	k.ask(k.r.draw(at, k.rand))
}

func (k *asker) ask(q question) {
	k.r.total.Started++
	k.q, k.asking, k.written, k.left = q, true, 0, q.respond
	if k.c != nil {
		k.write()
		return
	}
	err := k.connect(func(err error) {
		if err != nil {
			k.failed()
			return
		}
		k.write()
	})
	if err != nil {
		k.failed()
	}
}

// connect starts a connection; done is called when it is open or has failed.
func (k *asker) connect(done func(error)) error {
	_, err := k.r.a.dial(k.r.f, k.r.from, k.r.server, func(c *conn, err error) {
		if err != nil {
			done(err)
			return
		}
		k.c = c
		k.r.total.Connections++
		c.ready = k.ready
		if err := c.want(unix.EPOLLIN); err != nil {
			k.c = nil
			c.abort()
			done(err)
			return
		}
		done(nil)
	})
	return err
}

// write sends the rest of the request: its two sizes, and zeros.
func (k *asker) write() {
	if k.written == 0 {
		var head [MinRequest]byte
		binary.BigEndian.PutUint64(head[:], uint64(k.q.size))
		binary.BigEndian.PutUint64(head[8:], uint64(k.q.respond))
		// A connected socket without unsent data accepts 16 bytes.
		n, err := unix.Write(k.c.fd, append(head[:], zeros[:min(k.q.size-MinRequest, 1400)]...))
		if err != nil || n < MinRequest {
			k.failed()
			return
		}
		k.written = int64(n)
		k.r.f.sent.bytes += uint64(n)
	}
	if k.written < k.q.size {
		n, err := k.c.write(k.q.size - k.written)
		if err != nil {
			k.failed()
			return
		}
		k.written += n
	}
	events := uint32(unix.EPOLLIN)
	if k.written < k.q.size {
		events |= unix.EPOLLOUT
	}
	if k.c.want(events) != nil {
		k.failed()
	}
}

func (k *asker) ready(events uint32) {
	if k.asking && events&unix.EPOLLOUT != 0 && k.written < k.q.size {
		if k.write(); k.c == nil {
			return
		}
	}
	if events&^unix.EPOLLOUT == 0 {
		return
	}
	if !k.asking {
		// No data is expected: this is the end of the connection, which the next request will notice.
		k.c.close()
		k.c = nil
		return
	}
	n, eof, err := k.c.skip(k.left)
	k.left -= n
	k.r.total.ResponseBytes += uint64(n)
	switch {
	case err != nil || eof:
		k.failed()
	case k.left == 0:
		k.done()
	}
}

// done is called at the end of a response.
func (k *asker) done() {
	r := k.r
	now := r.a.now()
	r.total.Done++
	r.latency.add(now - k.q.at)
	r.recent.add(now - k.q.at)
	k.asking = false
	if r.f.Requests.Reconnect {
		// The answerer closes. The end that closes first keeps the port for a minute (TIME_WAIT), and
		// the asker's ports are limited.
		c := k.c
		k.c = nil
		c.ready = func(uint32) {
			if n, eof, err := c.skip(1); n == 0 && (eof || err != nil) {
				c.close()
			}
		}
		c.ready(0)
	}
	k.next(now)
}

// failed gives up a request and the connection. The asker continues after a pause.
func (k *asker) failed() {
	if k.c != nil {
		k.c.abort()
		k.c = nil
	}
	k.asking = false
	k.r.total.Failed++
	k.r.a.after(k.r.a.now()+int64(failurePause), k.next)
}

// next decides what an idle asker does.
func (k *asker) next(now int64) {
	r := k.r
	if k.rand != nil {
		if think := int64(r.f.Requests.Think.Draw(k.rand)); think > 0 {
			r.a.after(now+think, k.want)
		} else {
			k.want(now)
		}
		return
	}
	if q, ok := r.waiting.pop(); ok {
		k.ask(q)
		return
	}
	r.idle = append(r.idle, k)
}

// queue is the backlog, first in, first out.
type queue struct {
	q    []question
	head int
}

func (b *queue) len() int { return len(b.q) - b.head }

func (b *queue) push(q question) { b.q = append(b.q, q) }

func (b *queue) pop() (q question, ok bool) {
	if b.len() == 0 {
		return q, false
	}
	q = b.q[b.head]
	if b.head++; b.head > len(b.q)/2 {
		// Each question is moved at most once for each one that was removed.
		b.q = b.q[:copy(b.q, b.q[b.head:])]
		b.head = 0
	}
	return q, true
}

// interval adds the counts since the last one.
func (r *requester) interval(iv *Interval) {
	now := r.total
	now.UnderWay = now.Started - now.Done - now.Failed
	now.Backlog = uint64(r.waiting.len())
	s := now
	s.MaxBacklog = uint64(r.maxBacklog)
	for _, c := range []struct {
		to   *uint64
		from uint64
	}{
		{&s.Arrived, r.last.Arrived}, {&s.Refused, r.last.Refused}, {&s.Started, r.last.Started}, {&s.Done, r.last.Done},
		{&s.Failed, r.last.Failed}, {&s.Connections, r.last.Connections},
		{&s.RequestBytes, r.last.RequestBytes}, {&s.ResponseBytes, r.last.ResponseBytes},
	} {
		*c.to -= c.from
	}
	s.Latency = r.recent.times()
	r.total.MaxBacklog = max(r.total.MaxBacklog, s.MaxBacklog)
	r.last, r.recent, r.maxBacklog = now, histogram{counts: r.recent.counts[:0]}, r.waiting.len()
	iv.Requests = &s
}

func (r *requester) result(fr *FlowResult) {
	s := r.total
	s.UnderWay = s.Started - s.Done - s.Failed
	s.Backlog = uint64(r.waiting.len())
	s.Latency = r.latency.times()
	fr.Requests = &s
}
