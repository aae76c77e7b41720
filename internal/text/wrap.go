package text

import "strings"

// Wrap breaks text between words into lines of at most width bytes, each with an indent. A longer word has
// a line of its own.
func Wrap(text, indent string, width int) (out []string) {
	line := indent
	for _, word := range strings.Fields(text) {
		if line != indent && len(line)+1+len(word) > width {
			out = append(out, line)
			line = indent
		}
		if line != indent {
			line += " "
		}
		line += word
	}
	return append(out, line)
}
