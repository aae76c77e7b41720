package config

import (
	"fmt"
	"strings"
)

// decoder converts the tree of one document into a value. Each method takes a node and its key,
// the path in the user's terms.
type decoder struct {
	*source
	places map[string]position // of each key in the document
	broken map[string]bool     // keys with an error, whose values are not validated further
}

func newDecoder(s *source) *decoder {
	return &decoder{s, map[string]position{}, map[string]bool{}}
}

// invalid reports a value that cannot be parsed.
func (d *decoder) invalid(n *node, key, format string, args ...any) {
	d.broken[key] = true
	if n.shape == refused {
		return
	}
	d.addError(d.place(key, n.position), key, format, args...)
}

// place returns the position of the key, or else of its nearest parent key.
func (d *decoder) place(key string, otherwise position) position {
	for key != "" {
		if p, ok := d.places[key]; ok {
			return p
		}
		key = parent(key)
	}
	return otherwise
}

// parent returns the parent of a key: for "out.groups[1]", "out.groups".
func parent(key string) string { return key[:max(0, strings.LastIndexAny(key, ".["))] }

// needs reports that a mapping lacks a required key. format gets the name of the key.
func (d *decoder) needs(n *node, path, name, format string) {
	key := join(path, name)
	if _, given := d.places[key]; !given && !d.broken[key] && !d.broken[path] {
		d.invalid(n, key, format, name)
	}
}

// field is one key that a mapping accepts.
type field struct {
	name string
	read func(n *node, key string)
}

// fields parses a mapping; each key is accepted once. If a key is misspelt, the likely intended
// key counts as broken, so that it is not reported as missing too.
func (d *decoder) fields(n *node, path, what string, fields []field) {
	if n.shape != mapping {
		d.invalid(n, path, "%s is %s: write a mapping of %s", what, n.shape, keys(fields))
		return
	}
	if n.part {
		d.broken[path] = true
	}
	first := map[string]position{}
	for _, p := range n.pairs {
		key := join(path, p.key)
		if earlier, dup := first[p.key]; dup {
			d.addError(p.position, key, "duplicate key (first on line %d): remove one", earlier.line)
			continue
		}
		first[p.key] = p.position
		d.places[key] = p.position
		if !readField(fields, p, key) {
			message, meant := unknown(p.key, what, fields)
			d.invalid(p.value, key, "%s", message)
			if meant != "" {
				d.broken[join(path, meant)] = true
			}
		}
	}
}

func readField(fields []field, p pair, key string) bool {
	for _, f := range fields {
		if f.name == p.key {
			f.read(p.value, key)
			return true
		}
	}
	return false
}

func keys(fields []field) string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return strings.Join(names, ", ")
}

// each parses the items of a list. what names an item in messages.
func (d *decoder) each(n *node, key, what string, read func(n *node, key string)) {
	switch {
	case n.shape != list:
		d.invalid(n, key, "expected a list, found %s: write each item on a line that starts with \"- \"", n.shape)
	case len(n.items) == 0:
		d.invalid(n, key, "the list is empty: add %s to it", what)
	}
	for i, item := range n.items {
		k := fmt.Sprintf("%s[%d]", key, i)
		d.places[k] = item.position
		read(item, k)
	}
}

// oneOrMore parses a scalar, or a list of scalars, with parse.
func oneOrMore[T any](d *decoder, out *[]T, parse func(string) ([]T, error)) func(*node, string) {
	one := func(n *node, key string) {
		var v []T
		if value(d, &v, parse)(n, key) {
			*out = append(*out, v...)
		}
	}
	return func(n *node, key string) {
		if n.shape != list {
			one(n, key)
			return
		}
		d.each(n, key, "a value", one)
	}
}

// one parses a scalar with parse, whose error is the message.
func one[T any](d *decoder, out *T, parse func(string) (T, error)) func(*node, string) {
	read := value(d, out, parse)
	return func(n *node, key string) { read(n, key) }
}

func value[T any](d *decoder, out *T, parse func(string) (T, error)) func(*node, string) bool {
	return func(n *node, key string) bool {
		switch n.shape {
		case scalar:
		case null:
			d.invalid(n, key, "the value is missing: write one, or remove %s", lastKey(key))
			return false
		default:
			d.invalid(n, key, "%s is not allowed here: write %s", n.shape, scalar)
			return false
		}
		v, err := parse(n.text)
		if err != nil {
			d.invalid(n, key, "%v", err)
			return false
		}
		*out = v
		return true
	}
}

func lastKey(key string) string {
	key = key[strings.LastIndexByte(key, '.')+1:]
	if i := strings.IndexByte(key, '['); i > 0 {
		key = key[:i]
	}
	return key
}

func text[T ~string](s string) (T, error) { return T(s), nil }

func boolean(s string) (bool, error) {
	switch s {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("%q is not true or false: write true, or remove the key", s)
}
