package text

import (
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	var b strings.Builder
	// A short row between two others does not end their columns, and no line ends with spaces.
	if err := Table(&b, "  ", [][]string{{"NAME", "RATE", "NOTE"}, {"a"}, {"longer", "1Mbit", "x"}}); err != nil {
		t.Fatal(err)
	}
	if got, want := b.String(), "  NAME    RATE   NOTE\n  a\n  longer  1Mbit  x\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
