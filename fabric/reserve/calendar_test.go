package reserve

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// booking is a rate in [from, to).
type booking struct{ from, to, rate int64 }

// slow is the oracle of a calendar: a list of all that was added.
type slow []booking

func (s slow) level(at int64) (sum int64) {
	for _, b := range s {
		if b.from <= at && at < b.to {
			sum += b.rate
		}
	}
	return sum
}

// moments are those at which the rate may change.
func (s slow) moments() (all []int64) {
	for _, b := range s {
		all = append(all, b.from, b.to)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (s slow) highest(from, to int64) int64 {
	most := s.level(from)
	for _, at := range s.moments() {
		if at > from && at < to {
			most = max(most, s.level(at))
		}
	}
	return most
}

func (s slow) earliest(from, duration, level int64) int64 {
	if level < 0 {
		return never
	}
	for _, start := range append([]int64{from}, s.moments()...) {
		if start >= from && s.highest(start, start+duration) <= level {
			return start
		}
	}
	return never
}

func drawBooking(t *rapid.T) booking {
	from := rapid.Int64Range(0, 30).Draw(t, "from")
	return booking{from, from + rapid.Int64Range(1, 12).Draw(t, "length"), rapid.Int64Range(1, 5).Draw(t, "rate")}
}

func TestCalendarIsTheListOfBookings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c calendar
		var s slow
		for range rapid.IntRange(0, 20).Draw(t, "operations") {
			if len(s) > 0 && rapid.IntRange(0, 3).Draw(t, "remove") == 0 {
				i := rapid.IntRange(0, len(s)-1).Draw(t, "which")
				c = c.add(s[i].from, s[i].to, -s[i].rate)
				s = slices.Delete(s, i, i+1)
				continue
			}
			b := drawBooking(t)
			c, s = c.add(b.from, b.to, b.rate), append(s, b)
		}
		for from := int64(-1); from < 44; from++ {
			if got, want := c.level(from), s.level(from); got != want {
				t.Fatalf("level(%d) = %d, want %d of %v", from, got, want, s)
			}
			length := rapid.Int64Range(1, 44).Draw(t, "length")
			if got, want := c.highest(from, from+length), s.highest(from, from+length); got != want {
				t.Fatalf("highest(%d, %d) = %d, want %d of %v", from, from+length, got, want, s)
			}
			level := rapid.Int64Range(-1, 12).Draw(t, "level")
			if got, want := c.earliest(from, length, level), s.earliest(from, length, level); got != want {
				t.Fatalf("earliest(%d, %d, %d) = %d, want %d of %v", from, length, level, got, want, s)
			}
			over := c.firstOver(from, level)
			if over != never && (over < from || s.level(over) <= level) || s.highest(from, min(over, 100)) > level && over > from {
				t.Fatalf("firstOver(%d, %d) = %d of %v", from, level, over, s)
			}
		}
		was := int64(0)
		c.each(func(at, rate int64) {
			if rate == was || rate != s.level(at) {
				t.Fatalf("each(%d, %d) after %d, want %d", at, rate, was, s.level(at))
			}
			was = rate
		})
	})
}

// The tree depends on the function alone, so that to remove restores exactly, and a replay has the same tree.
func TestCalendarIsCanonical(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(drawBooking), 0, 20).Draw(t, "bookings")
		other := rapid.Permutation(all).Draw(t, "other order")
		extra := rapid.Custom(drawBooking).Draw(t, "extra")
		var a, b calendar
		for i := range all {
			a = a.add(all[i].from, all[i].to, all[i].rate)
			b = b.add(other[i].from, other[i].to, other[i].rate)
		}
		more := b.add(extra.from, extra.to, extra.rate)
		if !reflect.DeepEqual(a, b) {
			t.Fatal("the same bookings in another order have another tree")
		}
		if !reflect.DeepEqual(a, more.add(extra.from, extra.to, -extra.rate)) {
			t.Fatal("a booking that was removed left a trace")
		}
	})
}

func TestCalendarDepth(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var c calendar
	for i := range int64(10_000) {
		c = c.add(i*1e9, i*1e9+1+rnd.Int64N(1e12), 1+rnd.Int64N(100)) // starts in order: the worst for a tree without balance
	}
	if got, limit := depth(c.root), 4*bits.Len(20_000); got > limit {
		t.Errorf("the tree of 20,000 steps is %d deep, want at most %d", got, limit)
	}
}

func depth(s *step) int {
	if s == nil {
		return 0
	}
	return 1 + max(depth(s.left), depth(s.right))
}

func BenchmarkCalendar(b *testing.B) {
	for _, n := range []int64{100, 10_000} {
		rnd := rand.New(rand.NewPCG(1, 2))
		var c calendar
		for range n {
			from := rnd.Int64N(1e6)
			c = c.add(from, from+1+rnd.Int64N(1e4), 1+rnd.Int64N(100))
		}
		b.Run(fmt.Sprintf("%d/highest", n), func(b *testing.B) {
			for i := range b.N {
				from := int64(i*7919) % 1e6
				c.highest(from, from+1e4)
			}
		})
		b.Run(fmt.Sprintf("%d/add", n), func(b *testing.B) {
			for i := range b.N {
				from := int64(i*7919) % 1e6
				c.add(from, from+1e4, 50)
			}
		})
	}
}
