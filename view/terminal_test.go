package view

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// Poll passes on the first reading as the first, and with once ends after the next.
func TestPoll(t *testing.T) {
	reads, seen := 0, ""
	read := func() (int, error) { reads++; return reads, nil }
	err := Poll(t.Context(), time.Millisecond, true, read, func(now int, first bool) error {
		if seen += string(rune('0' + now)); first {
			seen += "first "
		}
		return nil
	})
	if err != nil || seen != "1first 2" {
		t.Errorf("%q, %v", seen, err)
	}
	broken := errors.New("broken")
	if err := Poll(t.Context(), time.Millisecond, true, func() (int, error) { return 0, broken }, nil); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	reads = 0
	err = Poll(t.Context(), time.Millisecond, false, read, func(now int, _ bool) error {
		if now == 4 {
			return broken
		}
		return nil
	})
	if !errors.Is(err, broken) || reads != 4 {
		t.Errorf("%d reads: %v", reads, err)
	}
}

// A line overwrites the one before. Without a terminal nothing is printed.
func TestStatusLine(t *testing.T) {
	var b strings.Builder
	l := NewStatusLine(&b)
	l.Show("one")
	l.Show("two")
	l.Clear()
	l.Clear()
	if want := "one\r   \rtwo\r   \r"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	(&StatusLine{}).Show("nothing")
	if _, live := Width(&b); live {
		t.Error("a buffer is no terminal")
	}
}
