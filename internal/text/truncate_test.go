package text

import "testing"

func TestTruncate(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{"", 5, ""}, {"short", 5, "short"}, {"longer", 5, "lo..."}, {"two\nlines", 20, "two; lines"},
		{"aü long", 5, "a..."}, // no half of a character
	} {
		if got := Truncate(c.text, c.width); got != c.want {
			t.Errorf("Truncate(%q, %d): %q, want %q", c.text, c.width, got, c.want)
		}
	}
}
