package config

import (
	"fmt"
	"strings"
)

// Mistake is one place that must be changed by the user, and how.
type Mistake struct {
	File   string `json:"file"`          // as the user called it; "-" is standard input
	Line   int    `json:"line"`          // from 1; 0 if the file itself is the mistake
	Column int    `json:"column"`        // from 1, in characters; 0 if unknown
	Key    string `json:"key,omitempty"` // the user's keys from the document's top: "out.groups[1].guarantee"

	// Message is a sentence that ends with the remedy.
	Message string `json:"message"`
}

// String is "file:line: key: message", without the parts that are not known.
func (m Mistake) String() string {
	s := m.File
	if m.Line > 0 {
		s += fmt.Sprintf(":%d", m.Line)
	}
	if m.Key != "" {
		s += ": " + m.Key
	}
	return s + ": " + m.Message
}

// Mistakes is the error of a configuration: never empty, in the order of the
// files and lines.
type Mistakes []Mistake

// Error is one mistake a line.
func (m Mistakes) Error() string {
	lines := make([]string, len(m))
	for i, one := range m {
		lines[i] = one.String()
	}
	return strings.Join(lines, "\n")
}
