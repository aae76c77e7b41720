package bench

import (
	"strings"
	"sync"
)

// Tail is the last output of a process. Any number of goroutines may use it.
type Tail struct {
	// Keep is how many bytes are kept.
	Keep int

	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (t *Tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	t.text = t.text[max(len(t.text)-t.Keep, 0):]
	return len(b), nil
}

// String returns what is kept.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}

// LastLines returns the last 300 bytes of an output in one line, for an error.
func LastLines(s string) string {
	s = strings.TrimSpace(s)
	return strings.ReplaceAll(s[max(len(s)-300, 0):], "\n", " ")
}
