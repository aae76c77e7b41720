package text

import (
	"fmt"
	"io"
	"unicode/utf8"
)

// Plain returns a writer that writes control characters as escapes, such as \x1b, but for line ends and tabs. A terminal would obey those in a text that comes from
// elsewhere, as the names of devices of another host do.
func Plain(w io.Writer) io.Writer { return plain{w} }

type plain struct{ to io.Writer }

func (p plain) Write(b []byte) (int, error) {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		switch {
		case r == '\n' || r == '\t':
			out = append(out, b[i])
		case r < ' ' || r == 0x7f || r == utf8.RuneError && size == 1 && utf8.FullRune(b[i:]):
			out = fmt.Appendf(out, `\x%02x`, b[i])
		case r >= 0x80 && r < 0xa0:
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			out = append(out, b[i:i+size]...)
		}
		i += size
	}
	if _, err := p.to.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}
