package host

import (
	"sync"

	"headgate.dev/headgate/relay/stripe"
)

// payloads is memory for payloads that nothing uses. sync.Pool loses what it has at each garbage collection, and then
// clearing new memory, and collecting it again, took a fifth of an entry's processor time.
var payloads payloadList

type payloadList struct {
	mu   sync.Mutex
	free []*[stripe.MaxPayload]byte
	// unused is the least length of free since the last trim.
	unused int
}

// newPayload returns memory for a payload, which freePayload may take back.
func newPayload(size int) []byte {
	if size < smallRead {
		return make([]byte, size)
	}
	return payloads.get()[:size]
}

// freePayload takes back the memory of a payload that nothing uses any longer.
func freePayload(b []byte) {
	if cap(b) == stripe.MaxPayload {
		payloads.put((*[stripe.MaxPayload]byte)(b[:stripe.MaxPayload]))
	}
}

func (l *payloadList) get() *[stripe.MaxPayload]byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := len(l.free) - 1
	l.unused = max(min(l.unused, last), 0)
	if last < 0 {
		return new([stripe.MaxPayload]byte)
	}
	b := l.free[last]
	l.free[last] = nil
	l.free = l.free[:last]
	return b
}

func (l *payloadList) put(b *[stripe.MaxPayload]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = append(l.free, b)
}

// trim leaves half of what was not used since the last trim to the garbage collector.
func (l *payloadList) trim() {
	l.mu.Lock()
	defer l.mu.Unlock()
	keep := len(l.free) - (l.unused+1)/2
	clear(l.free[keep:])
	l.free = l.free[:keep]
	l.unused = keep
}
