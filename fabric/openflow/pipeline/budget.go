package pipeline

import "sync/atomic"

// Budget bounds what traces return. Several traces at a time can share one. The nil Budget has no bound.
type Budget struct{ steps, bytes atomic.Int64 }

// NewBudget returns a budget of so many steps, and of so many bytes of frames. Flows that are unsure count as steps.
func NewBudget(steps, bytes int) *Budget {
	b := &Budget{}
	b.steps.Store(int64(steps))
	b.bytes.Store(int64(bytes))
	return b
}

// Spend takes steps and bytes, and reports whether there were as many. If not, the budget is spent.
func (b *Budget) Spend(steps, bytes int) bool {
	if b == nil {
		return true
	}
	left, of := b.steps.Add(-int64(steps)), b.bytes.Add(-int64(bytes))
	return left >= 0 && of >= 0
}

// Spent reports whether more was asked of the budget than it had.
func (b *Budget) Spent() bool { return b != nil && (b.steps.Load() < 0 || b.bytes.Load() < 0) }

// maxWork bounds the tables, actions, buckets and ports that one trace looks at: with 4,096 groups of 4,096 buckets that watch each
// other a switch can make any number. A frame that is sent to 4,096 ports takes some 16,000. The value is chosen for Headgate.
const maxWork = 1 << 17
