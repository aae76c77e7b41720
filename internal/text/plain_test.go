package text

import (
	"bytes"
	"testing"
)

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"eth0  1Gbit\n\tübung\n": "eth0  1Gbit\n\tübung\n",
		"v\x1b[31mX":             `v\x1b[31mX`,
		"a\rb\x00\x7f":           `a\x0db\x00\x7f`,
		"\u009b31m":              `\u009b31m`,
		"\x9b31m":                `\x9b31m`,
	} {
		var out bytes.Buffer
		if n, err := Plain(&out).Write([]byte(in)); n != len(in) || err != nil {
			t.Errorf("%q: %d, %v", in, n, err)
		}
		if out.String() != want {
			t.Errorf("%q is written as %q, want %q", in, out.String(), want)
		}
	}
}
