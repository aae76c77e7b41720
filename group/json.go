package group

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// exclusions is one mapping, as in YAML, or a list with the exclusions of nested groups.
type exclusions []Selector

func (x exclusions) MarshalJSON() ([]byte, error) {
	if len(x) == 1 {
		return json.Marshal(x[0])
	}
	return json.Marshal([]Selector(x))
}

func (x *exclusions) UnmarshalJSON(text []byte) error {
	list := []Selector{{}}
	var err error
	if text = bytes.TrimSpace(text); len(text) > 0 && text[0] == '[' {
		err = json.Unmarshal(text, &list)
	} else {
		err = json.Unmarshal(text, &list[0])
	}
	for _, s := range list {
		if err == nil && len(s.Not) > 0 {
			err = errors.New("\"not\" inside \"not\" is not supported: write the fields to match outside of it")
		}
	}
	*x = list
	return err
}

// MarshalJSON formats each field with the words used in YAML: a list, or one string if the field is
// Single. Plain numbers of numeric fields are numbers.
func (s Selector) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	key := func(name string, value any) error {
		text, err := json.Marshal(value)
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, "%q:%s", name, text)
		return err
	}
	out.WriteByte('{')
	for _, f := range Fields {
		texts := f.texts(&s)
		if len(texts) == 0 {
			continue
		}
		words := make([]any, len(texts))
		for i, t := range texts {
			words[i] = t
			if _, err := strconv.ParseUint(t, 10, 32); err == nil && f.Numeric {
				words[i] = json.Number(t)
			}
		}
		var value any = words
		if f.Single {
			value = words[0]
		}
		if err := key(f.Name, value); err != nil {
			return nil, err
		}
	}
	if len(s.Not) > 0 {
		if err := key("not", exclusions(s.Not)); err != nil {
			return nil, err
		}
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// UnmarshalJSON parses the output of MarshalJSON.
func (s *Selector) UnmarshalJSON(text []byte) error {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(text, &keys); err != nil {
		return err
	}
	*s = Selector{}
	for _, f := range Fields {
		raw, ok := keys[f.Name]
		if !ok {
			continue
		}
		words, err := f.words(raw)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		for _, w := range words {
			if err := f.load(s, w); err != nil {
				return err
			}
		}
	}
	if raw, ok := keys["not"]; ok {
		return json.Unmarshal(raw, (*exclusions)(&s.Not))
	}
	return nil
}

// words returns the values of a field in JSON as text.
func (f *Field) words(raw json.RawMessage) (out []string, err error) {
	list := []json.RawMessage{raw}
	if !f.Single {
		list = nil
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, err
		}
	}
	for _, one := range list {
		var text string
		var n uint32
		switch {
		case json.Unmarshal(one, &text) == nil:
		case f.Numeric && json.Unmarshal(one, &n) == nil:
			text = strconv.FormatUint(uint64(n), 10)
		case f.Numeric:
			return nil, fmt.Errorf("%s is neither an integer from 0 to 4294967295 nor a string", one)
		default:
			return nil, fmt.Errorf("%s is not a string", one)
		}
		if text != "" || !f.Single {
			out = append(out, text)
		}
	}
	return out, nil
}
