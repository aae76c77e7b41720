package session

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// Hex is a number that JSON has as hexadecimal text: a double has no 64 bits.
type Hex uint64

// MarshalJSON writes it.
func (h Hex) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, `"%016x"`, uint64(h)), nil }

// UnmarshalJSON reads it.
func (h *Hex) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	n, err := strconv.ParseUint(s, 16, 64)
	*h = Hex(n)
	return err
}
