package traffic

import "container/heap"

// sendLoop lets every flow write when it is due. It wakes at least once a tick, for changes from
// outside.
func (s *Session) sendLoop() {
	quickSleep()
	q := make(dueQueue, 0, len(s.flows))
	for _, f := range s.flows {
		if f.sender != nil {
			q = append(q, f)
		}
	}
	for wake := s.start; ; {
		sleepUntil(wake)
		select {
		case <-s.stop:
			return
		default:
		}
		now := mono()
		if d := now - wake; d > int64(StallBound) {
			s.stalls = append(s.stalls, Stall{float64(wake-s.start) / 1e9, float64(d) / 1e9})
		}
		now -= s.start
		if s.changed.Swap(false) {
			for _, f := range q {
				f.due = now
			}
			heap.Init(&q)
		}
		for len(q) > 0 && q[0].due <= now {
			f := q[0]
			if due, ok := f.turn(now); ok {
				f.due = due
				heap.Fix(&q, 0)
			} else {
				heap.Pop(&q)
			}
		}
		wake = s.start + now + int64(tick)
		if len(q) > 0 {
			wake = min(wake, s.start+q[0].due)
		}
	}
}

// turn lets the flow write; a failed flow gets no further turn.
func (f *flow) turn(now int64) (due int64, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failure == nil {
		due, f.failure = f.sender.work(now)
	}
	return due, f.failure == nil
}

// dueQueue is a heap of flows with the earliest due on top: a flow that sends ten frames a second is
// woken ten times a second, not a thousand times.
type dueQueue []*flow

func (q dueQueue) Len() int           { return len(q) }
func (q dueQueue) Less(i, j int) bool { return q[i].due < q[j].due }
func (q dueQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *dueQueue) Push(x any)        { *q = append(*q, x.(*flow)) }
func (q *dueQueue) Pop() any {
	last := len(*q) - 1
	f := (*q)[last]
	*q = (*q)[:last]
	return f
}
