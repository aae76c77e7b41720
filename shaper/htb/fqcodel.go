package htb

import (
	"slices"
	"sync"

	"headgate/internal/nl"
)

// fqCodel is whether the kernel has fq_codel, asked once a process.
var fqCodel struct {
	once sync.Once
	has  bool
}

// flowQueues tells whether leaves keep flows apart: where the kernel has fq_codel.
// One that is in use anywhere answers that; and what another process has made is
// never taken for something that cannot be.
func (k *kernel) flowQueues() bool {
	if slices.ContainsFunc(k.Qdiscs, func(q nl.Object) bool { return q.Kind == nl.FQCodelKind }) {
		return true
	}
	fqCodel.once.Do(func() { fqCodel.has = k.conn.HasFQCodel() })
	return fqCodel.has
}
