package htb

import (
	"slices"
	"sync"

	"headgate.dev/headgate/internal/nl"
)

// fqCodel caches whether the kernel has fq_codel, detected once per process.
var fqCodel struct {
	once sync.Once
	has  bool
}

// flowQueues reports whether leaves separate flows, which requires fq_codel in the kernel. Any
// fq_codel qdisc in use proves that. Therefore, a state that another process created is never
// considered impossible.
func (k *kernel) flowQueues() bool {
	if slices.ContainsFunc(k.Qdiscs, func(q nl.Object) bool { return q.Kind == nl.FQCodelKind }) {
		return true
	}
	fqCodel.once.Do(func() { fqCodel.has = k.conn.SupportsFQCodel() })
	return fqCodel.has
}
