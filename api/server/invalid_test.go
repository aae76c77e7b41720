package server

import "testing"

// The reasons of a validator are one line without the places, which the field has.
func TestReason(t *testing.T) {
	for text, want := range map[string]string{
		"at '': minimum: got 0, want 1": "minimum: got 0, want 1",
		"jsonschema validation failed with 'https://example.com/schema.json#'\n- at '/days': minimum: got 0, want 1": "minimum: got 0, want 1",
		"jsonschema validation failed with 'x'\n- at '/a': got string, want number\n- at '/b': minLength: got 0":     "got string, want number; minLength: got 0",
		"value is not one of the allowed values": "value is not one of the allowed values",
	} {
		if got := reasonOf(text); got != want {
			t.Errorf("%q gives %q, want %q", text, got, want)
		}
	}
}
