package ovsdb

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The notations of RFC 7047, section 5.1. Strings, integers, reals and booleans are those of JSON.

// uuid identifies a row: ["uuid", "550e8400-e29b-41d4-a716-446655440000"].
type uuid string

// named stands for the row that an insert of the same transaction makes under this name: ["named-uuid", "port1"].
type named string

// setOf is a set: ["set", [...]], or the one element alone. Its order has no meaning.
type setOf[T comparable] []T

// mapOf maps strings to values: ["map", [[key, value], ...]].
type mapOf[T any] map[string]T

// parseUUID checks the form of RFC 4122, in lower case as the server writes it.
func parseUUID(s string) (uuid, error) {
	if len(s) != 36 || strings.Trim(s, "0123456789abcdef-") != "" {
		return "", fmt.Errorf("%.60q is not a UUID", s)
	}
	for i, c := range s {
		if (c == '-') != (i == 8 || i == 13 || i == 18 || i == 23) {
			return "", fmt.Errorf("%q is not a UUID", s)
		}
	}
	return uuid(s), nil
}

// MarshalJSON writes the notation <uuid>.
func (u uuid) MarshalJSON() ([]byte, error) { return json.Marshal([]string{"uuid", string(u)}) }

// UnmarshalJSON reads the notation <uuid>.
func (u *uuid) UnmarshalJSON(text []byte) error {
	var pair []string
	if err := json.Unmarshal(text, &pair); err != nil || len(pair) != 2 || pair[0] != "uuid" {
		return fmt.Errorf("%.60s is not a reference to a row, which is [\"uuid\", UUID]", text)
	}
	id, err := parseUUID(pair[1])
	*u = id
	return err
}

// MarshalJSON writes the notation <named-uuid>.
func (n named) MarshalJSON() ([]byte, error) { return json.Marshal([]string{"named-uuid", string(n)}) }

// MarshalJSON writes the notation <set>, always the long form.
func (s setOf[T]) MarshalJSON() ([]byte, error) {
	if s == nil {
		s = setOf[T]{}
	}
	return json.Marshal([]any{"set", []T(s)})
}

// UnmarshalJSON reads both forms of the notation <set>.
func (s *setOf[T]) UnmarshalJSON(text []byte) error {
	*s = nil
	elements, long, err := tagged("set", text)
	if err != nil {
		return err
	}
	if !long {
		elements = []json.RawMessage{text}
	}
	seen := make(map[T]bool, len(elements))
	for _, e := range elements {
		v, err := decodeAtom[T](e)
		if err != nil {
			return err
		}
		if seen[v] {
			return fmt.Errorf("the set has %.60s twice", e)
		}
		seen[v] = true
		*s = append(*s, v)
	}
	return nil
}

// MarshalJSON writes the notation <map>, in the order of the keys.
func (m mapOf[T]) MarshalJSON() ([]byte, error) {
	pairs := make([]any, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		pairs = append(pairs, []any{k, m[k]})
	}
	return json.Marshal([]any{"map", pairs})
}

// UnmarshalJSON reads the notation <map>.
func (m *mapOf[T]) UnmarshalJSON(text []byte) error {
	elements, long, err := tagged("map", text)
	if err != nil {
		return err
	}
	if !long {
		return fmt.Errorf("%.60s is not a map, which is [\"map\", [[KEY, VALUE], ...]]", text)
	}
	*m = make(mapOf[T], len(elements))
	for _, e := range elements {
		var pair []json.RawMessage
		if err := json.Unmarshal(e, &pair); err != nil || len(pair) != 2 {
			return fmt.Errorf("%.60s is not a [KEY, VALUE] of a map", e)
		}
		k, err := decodeAtom[string](pair[0])
		if err != nil {
			return err
		}
		if _, twice := (*m)[k]; twice {
			return fmt.Errorf("the map has the key %.60q twice", k)
		}
		if (*m)[k], err = decodeAtom[T](pair[1]); err != nil {
			return err
		}
	}
	return nil
}

// tagged returns the elements of [tag, [element, ...]]; long is false for any other JSON.
func tagged(tag string, text []byte) (elements []json.RawMessage, long bool, err error) {
	if text = bytes.TrimSpace(text); len(text) == 0 || text[0] != '[' {
		return nil, false, nil
	}
	var outer []json.RawMessage
	if err := json.Unmarshal(text, &outer); err != nil {
		return nil, false, err
	}
	if len(outer) != 2 || string(outer[0]) != `"`+tag+`"` {
		return nil, false, nil
	}
	if isNull(outer[1]) {
		return nil, false, fmt.Errorf("%.60s is not a %s, which is [%q, [...]]", text, tag, tag)
	}
	if err := json.Unmarshal(outer[1], &elements); err != nil {
		return nil, false, fmt.Errorf("%.60s is not a %s, which is [%q, [...]]", text, tag, tag)
	}
	return elements, true, nil
}

// decodeAtom decodes an atom. For null, which is no atom, encoding/json would return the zero value.
func decodeAtom[T any](text json.RawMessage) (v T, err error) {
	if isNull(text) {
		return v, fmt.Errorf("null is not a value of OVSDB")
	}
	err = json.Unmarshal(text, &v)
	return v, err
}
