package text

import "strings"

// Truncate returns a text as one line of at most width bytes. A truncated text ends with "...".
func Truncate(text string, width int) string {
	text = strings.ReplaceAll(text, "\n", "; ")
	if len(text) > width {
		return strings.ToValidUTF8(text[:width-3], "") + "..."
	}
	return text
}
