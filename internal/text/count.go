package text

import "fmt"

// Count formats a number with a noun, as "1 group" or "4 groups".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
