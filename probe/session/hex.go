package session

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// Hex is a number that is hexadecimal text in JSON: a JSON number does not have 64 bits.
type Hex uint64

// MarshalJSON encodes h as hexadecimal text.
func (h Hex) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, `"%016x"`, uint64(h)), nil }

// UnmarshalJSON decodes hexadecimal text.
func (h *Hex) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	n, err := strconv.ParseUint(s, 16, 64)
	*h = Hex(n)
	return err
}
