package link

// deque is a growing ring buffer.
type deque[T any] struct {
	items []T
	head  int
	n     int
}

func (d *deque[T]) push(v T) {
	if d.n == len(d.items) {
		more := make([]T, max(2*d.n, 16))
		for i := range d.n {
			more[i] = d.items[(d.head+i)&(len(d.items)-1)]
		}
		d.items, d.head = more, 0
	}
	d.items[(d.head+d.n)&(len(d.items)-1)] = v
	d.n++
}

// first returns the oldest element. The deque must not be empty.
func (d *deque[T]) first() *T { return d.at(0) }

// at returns the element i places behind the oldest.
func (d *deque[T]) at(i int) *T { return &d.items[(d.head+i)&(len(d.items)-1)] }

func (d *deque[T]) pop() T {
	v := d.items[d.head]
	d.head = (d.head + 1) & (len(d.items) - 1)
	d.n--
	return v
}
