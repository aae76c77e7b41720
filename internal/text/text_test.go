package text

import (
	"strings"
	"testing"
)

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text, indent string
		width        int
		want         string
	}{
		{"", "", 10, ""},
		{"  some  words ", "", 10, "some words"},
		{"one two three", "", 7, "one two|three"},
		{"one two three", "  ", 7, "  one|  two|  three"},
		{"unbreakable end", "", 5, "unbreakable|end"},
	} {
		if got := strings.Join(Wrap(c.text, c.indent, c.width), "|"); got != c.want {
			t.Errorf("Wrap(%q, %q, %d): %q, want %q", c.text, c.indent, c.width, got, c.want)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 groups", 1: "1 group", 2: "2 groups"} {
		if got := Count(n, "group"); got != want {
			t.Errorf("Count(%d): %q, want %q", n, got, want)
		}
	}
}
