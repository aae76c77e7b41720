package traffic

import (
	"errors"
	"fmt"
)

// Mistake is an error in a Flow, with its place.
type Mistake struct {
	// Key is the place in the notation of a lab file ("requests.think.shape"); "" is the whole flow.
	Key string
	// What is the problem and its remedy.
	What string
}

func (m *Mistake) Error() string {
	if m.Key == "" {
		return m.What
	}
	return m.Key + ": " + m.What
}

func mistake(key, format string, a ...any) error { return &Mistake{key, fmt.Sprintf(format, a...)} }

// within adds the key of a part to the Mistake of an error.
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
