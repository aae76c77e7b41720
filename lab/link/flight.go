package link

// flight has the segments between the serialiser and the receiver: those that keep their order, and
// those that may be reordered.
type flight struct {
	ordered deque[Result]
	last    int64 // when the last ordered segment is due
	loose   []Result
}

// add adds a segment that is due at its Released.
func (f *flight) add(r Result, reorder bool) {
	if !reorder {
		r.Released = max(r.Released, f.last)
		f.last = r.Released
		f.ordered.push(r)
		return
	}
	// loose is a binary heap with the earliest segment at 0.
	i := len(f.loose)
	f.loose = append(f.loose, r)
	for i > 0 && sooner(&r, &f.loose[(i-1)/2]) {
		f.loose[i] = f.loose[(i-1)/2]
		i = (i - 1) / 2
	}
	f.loose[i] = r
}

// first returns the segment that is due next, or nil.
func (f *flight) first() *Result {
	switch {
	case f.ordered.n == 0 && len(f.loose) == 0:
		return nil
	case len(f.loose) == 0:
		return f.ordered.first()
	case f.ordered.n == 0 || sooner(&f.loose[0], f.ordered.first()):
		return &f.loose[0]
	}
	return f.ordered.first()
}

// pop removes the segment of first.
func (f *flight) pop() Result {
	if len(f.loose) == 0 || f.ordered.n > 0 && !sooner(&f.loose[0], f.ordered.first()) {
		return f.ordered.pop()
	}
	out, n := f.loose[0], len(f.loose)-1
	moved := f.loose[n]
	f.loose = f.loose[:n]
	i := 0
	for n > 0 {
		child := 2*i + 1
		if child >= n {
			break
		}
		if child+1 < n && sooner(&f.loose[child+1], &f.loose[child]) {
			child++
		}
		if !sooner(&f.loose[child], &moved) {
			break
		}
		f.loose[i] = f.loose[child]
		i = child
	}
	if n > 0 {
		f.loose[i] = moved
	}
	return out
}

// sooner orders by time, then by arrival.
func sooner(a, b *Result) bool {
	if a.Released != b.Released {
		return a.Released < b.Released
	}
	return a.Number < b.Number
}
