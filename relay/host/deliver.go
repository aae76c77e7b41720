package host

import (
	"errors"
	"net"
)

// maxAtOnce is how many chunks the reader of a stream passes on before it reads the stream again.
const maxAtOnce = 16

// receive passes on what the other agent sends, until the direction ends.
func (k *conn) receive() {
	l := k.link
	l.mu.Lock()
	defer l.mu.Unlock()
	for !k.ended {
		if k.passing {
			k.changed.Wait()
			continue
		}
		switch end := k.next(); {
		case end:
			closeWrite(k.app)
			l.pump()
			return
		case k.rest == nil:
			k.changed.Wait()
		default:
			k.pass(k.to.Write)
		}
	}
}

// deliver passes on what has come as far as the application's socket takes it at once, and leaves the rest to receive. The
// reader of a stream calls it: to wake another goroutine for each chunk costs as much as the write.
func (k *conn) deliver() {
	to, ok := k.to.(*rawConn)
	l := k.link
	l.mu.Lock()
	defer l.mu.Unlock()
	for n := 0; ok && n < maxAtOnce; n++ {
		if k.passing || k.ended {
			return
		}
		if k.next() {
			break
		}
		if k.rest == nil {
			return
		}
		if k.pass(to.tryWrite); k.rest != nil {
			break
		}
	}
	k.changed.Broadcast()
}

// next takes the next chunk if nothing is left of the last one, and reports whether the direction has ended. link.mu must
// be held.
func (k *conn) next() (end bool) {
	if k.rest == nil {
		k.chunk, end = k.c.Read()
		k.rest = k.chunk
	}
	return end
}

// pass writes the rest of a chunk. link.mu must be held, and is not while write is called.
func (k *conn) pass(write func([]byte) (int, error)) {
	l := k.link
	k.passing = true
	l.mu.Unlock()
	n, err := write(k.rest)
	l.mu.Lock()
	k.passing = false
	if err != nil {
		if !k.ended && !errors.Is(err, net.ErrClosed) {
			k.c.Reset("the connection of the application failed: " + err.Error())
			k.err = err
		}
		k.end()
		l.pump()
		return
	}
	if k.rest = k.rest[n:]; len(k.rest) > 0 {
		return
	}
	size := len(k.chunk)
	freePayload(k.chunk)
	k.rest, k.chunk = nil, nil
	k.c.Consumed(size, l.now())
	l.pump()
}
