package config

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Limits of the input. They prevent a hostile or damaged file from exhausting memory; a file
// with 4,000 groups has half a megabyte and nests 12 levels deep.
const (
	// MaxFile is the maximum file size in bytes.
	MaxFile = 4 << 20
	// MaxNesting is the maximum depth of nested lists and mappings.
	MaxNesting = 64
)

// node is a YAML value without the features that are not supported. The rest of the package
// uses only this form.
type node struct {
	position
	shape shape
	text  string // of a scalar, as written
	plain bool   // the scalar has no quotes
	pairs []pair // of a mapping
	part  bool   // some pairs of the mapping were rejected
	items []*node
}

type position struct{ line, column int }

type pair struct {
	position
	key   string
	value *node
}

type shape string

const (
	scalar  shape = "a single value"
	mapping shape = "a mapping"
	list    shape = "a list"
	null    shape = "empty"
	refused shape = "refused" // rejected with an error that has been reported
)

// source parses the documents of one file.
type source struct {
	file     string
	now      time.Time // that of loader
	mistakes Errors
}

func (s *source) addError(at position, key, format string, args ...any) {
	s.mistakes = append(s.mistakes, Error{s.file, at.line, at.column, key, fmt.Sprintf(format, args...)})
}

// documents parses text into one tree per document. After a YAML syntax error the rest of the file
// is not parsed.
func (s *source) documents(text []byte) (docs []*node) {
	defer func() {
		// The YAML parser is tested with real files, not with arbitrary bytes. A panic in the
		// parser must not stop the program.
		if r := recover(); r != nil {
			s.addError(position{}, "", "cannot parse the file as YAML: check its quotes, brackets and indentation")
		}
	}()
	if !utf8.Valid(text) {
		s.addError(position{line: lineOfInvalid(text)}, "", "the file is not UTF-8 text: save it as UTF-8")
		return nil
	}
	tokens := lexer.Tokenize(strings.TrimPrefix(string(text), "\ufeff"))
	if at, deep := nesting(tokens); deep {
		s.addError(at, "", "lists and mappings nest more than %d levels deep: remove brackets", MaxNesting)
		return nil
	}
	file, err := parser.Parse(mergeColonTokens(tokens), 0, parser.AllowDuplicateMapKey())
	if err != nil {
		s.syntax(err)
		return nil
	}
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.DirectiveType || doc.Body.Type() == ast.CommentType {
			continue
		}
		if n := s.tree(doc.Body, ""); n.shape != null {
			docs = append(docs, n)
		}
	}
	return docs
}

func lineOfInvalid(text []byte) int {
	line := 1
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if r == utf8.RuneError && size == 1 {
			break
		}
		if r == '\n' {
			line++
		}
		text = text[size:]
	}
	return line
}

// nesting returns the first token that is nested too deep, before the parser recurses into it.
// Block mappings are not counted: each level costs a column.
func nesting(tokens token.Tokens) (position, bool) {
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
		case token.DocumentHeaderType:
			flow = 0
		}
		if flow > MaxNesting || dashes > MaxNesting {
			return at(t), true
		}
	}
	return position{}, false
}

// mergeColonTokens corrects a lexer error: the lexer splits the fd00::1 of a bracketed list inside
// braces at each colon, although in YAML 1.2 a colon that is not followed by a space is part of
// a plain scalar (section 7.3.3). Quoted keys are not changed: {"a":1}.
func mergeColonTokens(tokens token.Tokens) (out token.Tokens) {
	var flow []token.Type
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			flow = append(flow, t.Type)
		case token.SequenceEndType, token.MappingEndType:
			flow = flow[:max(0, len(flow)-1)]
		}
		inList := len(flow) > 0 && flow[len(flow)-1] == token.SequenceStartType
		if inList && t.Type == token.MappingValueType && i+1 < len(tokens) && plainAfter(t, tokens[i+1]) {
			text, at := t.Value+tokens[i+1].Value, t.Position
			if len(out) > 0 && isPlain(out[len(out)-1]) && plainAfter(out[len(out)-1], t) {
				text, at = out[len(out)-1].Value+text, out[len(out)-1].Position
				out = out[:len(out)-1]
			}
			t = token.New(text, text, at)
			i++
		}
		t.Prev, t.Next = nil, nil
		out.Add(t)
	}
	return out
}

// plainAfter reports whether b follows a directly, without a space.
func plainAfter(a, b *token.Token) bool {
	return (isPlain(b) || b.Type == token.MappingValueType) &&
		a.Position.Line == b.Position.Line && a.Position.Column+utf8.RuneCountInString(a.Value) == b.Position.Column
}

func isPlain(t *token.Token) bool {
	switch t.Type {
	case token.StringType, token.IntegerType, token.FloatType, token.HexIntegerType, token.OctetIntegerType, token.BinaryIntegerType, token.NullType, token.BoolType:
		return true
	}
	return false
}

func at(t *token.Token) position {
	if t == nil || t.Position == nil {
		return position{}
	}
	return position{t.Position.Line, t.Position.Column}
}

func (s *source) syntax(err error) {
	var e yaml.Error
	if !errors.As(err, &e) {
		s.addError(position{}, "", "cannot parse the file as YAML: %v", err)
		return
	}
	s.addError(at(e.GetToken()), "", "invalid YAML: %s: check the quotes, brackets and indentation on this line and the line before", e.GetMessage())
}

// tree converts one YAML value. key is its path, for errors.
func (s *source) tree(v ast.Node, key string) *node {
	n := &node{position: at(v.GetToken()), shape: null}
	switch v := v.(type) {
	case *ast.SequenceNode:
		n.shape = list
		for i, item := range v.Values {
			n.items = append(n.items, s.tree(item, fmt.Sprintf("%s[%d]", key, i)))
		}
	case ast.MapNode:
		n.shape = mapping
		for it := v.MapRange(); it.Next(); {
			if p, ok := s.pair(it.Key(), it.Value(), key); ok {
				n.pairs = append(n.pairs, p)
			} else {
				n.part = true
			}
		}
		if len(n.pairs) > 0 && (n.line > n.pairs[0].line || n.line == n.pairs[0].line && n.column > n.pairs[0].column) {
			n.position = n.pairs[0].position // the token of a block mapping is its first colon
		}
	case *ast.AnchorNode:
		s.addError(n.position, key, "anchors (&) are not supported: write the value out")
		return s.tree(v.Value, key)
	case *ast.AliasNode:
		s.addError(n.position, key, "aliases (*) are not supported: write the value out, or quote the text")
		n.shape = refused
	case *ast.TagNode:
		s.addError(n.position, key, "tags (!) are not supported: remove the tag, or quote the text")
		n.shape = refused
		if v.Value != nil {
			return s.tree(v.Value, key)
		}
	case *ast.LiteralNode:
		n.shape, n.text = scalar, v.Value.Value
	case *ast.StringNode:
		quoted := v.Token.Type == token.SingleQuoteType || v.Token.Type == token.DoubleQuoteType
		n.shape, n.text, n.plain = scalar, v.Value, !quoted
	case *ast.NullNode, *ast.CommentNode, *ast.CommentGroupNode:
	case ast.ScalarNode:
		n.shape, n.text, n.plain = scalar, v.GetToken().Value, true
	}
	return n
}

func (s *source) pair(k ast.MapKeyNode, v ast.Node, parent string) (pair, bool) {
	at := at(k.GetToken())
	if k.IsMergeKey() {
		s.addError(at, parent, "merge keys (<<) are not supported: write the values out")
		return pair{}, false
	}
	key, ok := k.(ast.ScalarNode)
	if !ok {
		s.addError(at, parent, "a key must be a plain word: write key: value")
		return pair{}, false
	}
	name := key.GetToken().Value
	return pair{at, name, s.tree(v, join(parent, name))}, true
}

// join appends a key to a path. A key that would be ambiguous in a message is quoted.
func join(path, key string) string {
	if key == "" || strings.Trim(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
		key = fmt.Sprintf("%q", key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}
