package config

import (
	"fmt"
	"strings"
)

// Error is one configuration error, with its place and its remedy.
type Error struct {
	File   string `json:"file"`          // as given by the user; "-" is standard input
	Line   int    `json:"line"`          // from 1; 0 if the error concerns the whole file
	Column int    `json:"column"`        // from 1, in characters; 0 if unknown
	Key    string `json:"key,omitempty"` // path of keys from the top of the document: "out.groups[1].guarantee"

	// Message describes the error and ends with the remedy.
	Message string `json:"message"`
}

// String returns "file:line: key: message", without unknown parts.
func (m Error) String() string {
	s := m.File
	if m.Line > 0 {
		s += fmt.Sprintf(":%d", m.Line)
	}
	if m.Key != "" {
		s += ": " + m.Key
	}
	return s + ": " + m.Message
}

// Errors is the error of an invalid configuration. It is never empty, and in the order of
// files and lines.
type Errors []Error

// Error returns one error per line.
func (m Errors) Error() string {
	lines := make([]string, len(m))
	for i, one := range m {
		lines[i] = one.String()
	}
	return strings.Join(lines, "\n")
}
