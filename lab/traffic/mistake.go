package traffic

import (
	"errors"
	"fmt"
)

// Mistake is what is wrong with a Flow, and where.
type Mistake struct {
	// Key is the place in the words of a lab file ("requests.think.shape"); "" is the
	// flow as a whole.
	Key string
	// What is wrong, and what to do about it.
	What string
}

func (m *Mistake) Error() string {
	if m.Key == "" {
		return m.What
	}
	return m.Key + ": " + m.What
}

func mistake(key, format string, a ...any) error { return &Mistake{key, fmt.Sprintf(format, a...)} }

// within is the mistake of a part, in the words of the whole.
func within(key string, err error) error {
	var m *Mistake
	if !errors.As(err, &m) {
		return err
	}
	if m.Key != "" {
		key += "." + m.Key
	}
	return &Mistake{key, m.What}
}
