package lab

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Limits on the input: they keep a damaged file from exhausting the machine's memory or the parser's
// stack. The largest lab is some 100 KB.
const (
	maxFile    = 1 << 20
	maxNesting = 32
)

// document reads one YAML file by walking its nodes, so that every error has its line and all are
// found in one pass.
type document struct {
	file  string
	lines map[string]int // line of every key: "links[2].rate"
	errs  []error

	offloads []string // keys of links that ask for offload
}

// fail records an error at a key, or at line if that is not 0.
func (d *document) fail(line int, key, format string, a ...any) {
	where := d.file
	// A key that is not in the file (it is missing, or follows from a shorter form) gets the line of
	// the nearest enclosing one.
	for k := key; line == 0 && k != ""; k = k[:max(strings.LastIndexAny(k, ".["), 0)] {
		line = d.lines[k]
	}
	if line > 0 {
		where += fmt.Sprintf(":%d", line)
	}
	if key != "" {
		where += ": " + key
	}
	d.errs = append(d.errs, configErrorf("%s: %s", where, fmt.Sprintf(format, a...)))
}

// parse returns the root of the file's only document.
func (d *document) parse(text []byte) (root ast.Node) {
	defer func() {
		// The parser panics on some invalid input.
		if r := recover(); r != nil {
			d.fail(0, "", "cannot parse the file as YAML: check its quotes, brackets and indentation")
			root = nil
		}
	}()
	if len(text) > maxFile || !utf8.Valid(text) {
		d.fail(0, "", "the file is not UTF-8 text of at most 1 MiB")
		return nil
	}
	tokens := lexer.Tokenize(string(text))
	if line := tooDeep(tokens); line > 0 {
		d.fail(line, "", "lists and mappings are nested more than %d deep: remove brackets", maxNesting)
		return nil
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		var e yaml.Error
		if errors.As(err, &e) && e.GetToken() != nil {
			d.fail(e.GetToken().Position.Line, "", "%s: correct the YAML", e.GetMessage())
		} else {
			d.fail(0, "", "cannot parse the file as YAML: %v", err)
		}
		return nil
	}
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentType {
			continue
		}
		if root != nil {
			d.fail(lineOf(doc.Body), "", "there is a second document: one file describes one lab")
			return nil
		}
		root = doc.Body
	}
	if root == nil {
		d.fail(0, "", "the file is empty: begin with \"kind: Lab\"")
	}
	return root
}

// tooDeep returns the line of the first token that is nested too deep, or 0.
func tooDeep(tokens token.Tokens) int {
	flow, dashes, line := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			line, dashes = t.Position.Line, 0
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow = max(0, flow-1)
		case token.SequenceEntryType, token.MappingKeyType:
			dashes++
		}
		if flow > maxNesting || dashes > maxNesting {
			return line
		}
	}
	return 0
}

func lineOf(n ast.Node) int {
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 0
	}
	return n.GetToken().Position.Line
}

// pairs returns the keys and values of a mapping, in order.
func (d *document) pairs(key string, n ast.Node, use func(name, key string, value ast.Node)) {
	var values []*ast.MappingValueNode
	switch m := n.(type) {
	case *ast.MappingNode:
		values = m.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{m}
	default:
		d.fail(lineOf(n), key, "a mapping (key: value) belongs here")
		return
	}
	seen := map[string]bool{}
	for _, v := range values {
		name, ok := text(v.Key)
		if !ok {
			d.fail(lineOf(v.Key), key, "this is not a plain key: write a word and a colon")
			continue
		}
		sub := name
		if key != "" {
			sub = key + "." + name
		}
		if seen[name] {
			d.fail(lineOf(v.Key), sub, "duplicate key: remove one")
			continue
		}
		seen[name] = true
		d.lines[sub] = lineOf(v.Key)
		use(name, sub, v.Value)
	}
}

// fields has a function for each key of a mapping.
type fields map[string]func(key string, n ast.Node)

// mapping reads a mapping whose keys are known.
func (d *document) mapping(key string, n ast.Node, known fields) {
	d.pairs(key, n, func(name, sub string, value ast.Node) {
		read := known[name]
		if read == nil {
			var names []string
			for k := range known {
				names = append(names, k)
			}
			slices.Sort(names)
			d.fail(0, sub, "there is no such key: write one of %s", strings.Join(names, ", "))
			return
		}
		read(sub, value)
	})
}

// list reads a list.
func (d *document) list(key string, n ast.Node, each func(key string, n ast.Node)) {
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		d.fail(lineOf(n), key, "a list belongs here: begin each entry with \"- \"")
		return
	}
	for i, v := range s.Values {
		sub := fmt.Sprintf("%s[%d]", key, i)
		d.lines[sub] = lineOf(v)
		each(sub, v)
	}
}

// text returns a scalar's text; ok is false for another node.
func text(n ast.Node) (string, bool) {
	switch s := n.(type) {
	case *ast.StringNode:
		return s.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return strings.TrimSpace(n.GetToken().Value), true
	}
	return "", false
}

// scalar returns a field that is parsed from one value. The error of parse is the message and should
// have a remedy.
func scalar[T any](d *document, to *T, parse func(string) (T, error)) func(string, ast.Node) {
	return func(key string, n ast.Node) {
		s, ok := text(n)
		if !ok {
			d.fail(lineOf(n), key, "a single value belongs here")
			return
		}
		v, err := parse(s)
		if err != nil {
			d.fail(0, key, "%v", err)
			return
		}
		*to = v
	}
}
