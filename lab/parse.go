package lab

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// Load reads a topology from a file; "-" is standard input. See Parse.
func Load(path string) (*Topology, error) {
	var b []byte
	var err error
	if path == "-" {
		b, err = io.ReadAll(io.LimitReader(os.Stdin, maxFile+1))
	} else {
		b, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, kindError{ErrConfig, err}
	}
	return Parse(path, b)
}

// Parse reads a topology from YAML (see the example of "headgate lab check --help") and validates it.
// The error, an ErrConfig, has a line for each problem: file:line: key: problem: remedy.
func Parse(file string, text []byte) (*Topology, error) {
	d := &document{file: file, lines: map[string]int{}}
	t := &Topology{}
	if root := d.parse(text); root != nil {
		d.topology(t, root)
	}
	if len(d.errs) == 0 {
		for _, p := range t.problems() {
			d.fail(0, p.where, "%s", p.what)
		}
	}
	if len(d.errs) > 0 {
		return nil, errors.Join(d.errs...)
	}
	return t, nil
}

func (d *document) topology(t *Topology, root ast.Node) {
	var kind string
	var timeline ast.Node // read last: it refers to links
	d.mapping("", root, fields{
		"kind": scalar(d, &kind, word),
		"name": scalar(d, &t.Name, word),
		"duration": func(key string, n ast.Node) {
			errs := len(d.errs)
			scalar(d, &t.Duration, duration)(key, n)
			if t.Duration <= 0 && len(d.errs) == errs {
				d.fail(0, key, "the duration is 0: write for example 10s, or leave it out")
			}
		},
		"seed": scalar(d, &t.Seed, seed),
		"nodes": func(key string, n ast.Node) {
			d.list(key, n, func(key string, n ast.Node) { t.Nodes = append(t.Nodes, d.node(key, n)) })
		},
		"switches": func(key string, n ast.Node) {
			d.list(key, n, func(key string, n ast.Node) { t.Switches = append(t.Switches, d.switchSpec(key, n)) })
		},
		"links": func(key string, n ast.Node) {
			d.list(key, n, func(key string, n ast.Node) { t.Links = append(t.Links, d.link(key, n)) })
		},
		"programs": func(key string, n ast.Node) {
			d.list(key, n, func(key string, n ast.Node) { t.Programs = append(t.Programs, d.program(key, n)) })
		},
		"timeline": func(_ string, n ast.Node) { timeline = n },
		"flows": func(key string, n ast.Node) {
			d.list(key, n, func(key string, n ast.Node) { t.Flows = append(t.Flows, d.flow(key, n)) })
		},
	})
	d.offloadAtSwitches(t)
	if timeline != nil {
		d.timeline(t, "timeline", timeline)
	}
	if kind != "Lab" && len(d.errs) == 0 {
		d.fail(0, "kind", "not a lab: write \"kind: Lab\"")
	}
}

func (d *document) node(key string, n ast.Node) (s NodeSpec) {
	// A host needs only a name.
	if name, ok := text(n); ok {
		return NodeSpec{Name: name}
	}
	d.mapping(key, n, fields{
		"name":   scalar(d, &s.Name, word),
		"router": scalar(d, &s.Router, yesNo),
		"switch": func(key string, n ast.Node) {
			d.fail(0, key, "a switch is not a node: list it under switches")
		},
		"sysctl": func(key string, n ast.Node) {
			s.Sysctl = map[string]string{}
			d.pairs(key, n, func(name, key string, n ast.Node) {
				var value string
				scalar(d, &value, word)(key, n)
				s.Sysctl[name] = value
			})
		},
	})
	return s
}

func word(s string) (string, error) { return s, nil }

func yesNo(s string) (bool, error) {
	switch s {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither true nor false", s)
}

func duration(s string) (time.Duration, error) {
	t, err := time.ParseDuration(s)
	if err != nil || t < 0 {
		return 0, fmt.Errorf("%q is not a duration: write for example 10ms or 1.5s", s)
	}
	return t, nil
}

func number[T uint8 | uint16 | uint32](limit uint64) func(string) (T, error) {
	return func(s string) (T, error) {
		v, err := strconv.ParseUint(s, 10, 64)
		if err != nil || v > limit {
			return 0, fmt.Errorf("%q is not a number from 0 to %d", s, limit)
		}
		return T(v), nil
	}
}

// seed reads the seed of a random number generator. 0 would be a new one for each run, which is
// configured by leaving the key out.
func seed(s string) (uint64, error) {
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil || v == 0 {
		return 0, fmt.Errorf("%q is not a seed: write a whole number from 1", s)
	}
	return v, nil
}
