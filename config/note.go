package config

import "fmt"

// Note is a remark about a key of a valid document: what the user may not expect of it.
type Note struct {
	File    string
	Line    int
	Key     string
	Message string
}

// String returns the note with its position.
func (n Note) String() string {
	return fmt.Sprintf("%s:%d: %s: note: %s", n.File, n.Line, n.Key, n.Message)
}

// Note returns a note about a key of the document.
func (i Interface) Note(key, format string, args ...any) Note {
	file, line, _ := i.Where(key)
	return Note{file, line, key, fmt.Sprintf(format, args...)}
}
