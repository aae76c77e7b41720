package lab

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/goccy/go-yaml/ast"

	"headgate/lab/traffic"
	"headgate/unit"
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

// Parse reads a topology from YAML (docs in the example of "headgate lab check
// --help") and validates it. The error, an ErrConfig, has a line for every
// mistake: file:line: key: what is wrong and what to write.
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
	var timeline ast.Node // read last: it speaks of links
	d.mapping("", root, fields{
		"kind":     scalar(d, &kind, word),
		"name":     scalar(d, &t.Name, word),
		"duration": scalar(d, &t.Duration, duration),
		"nodes": func(key string, n ast.Node) {
			d.list(key, n, func(key string, n ast.Node) { t.Nodes = append(t.Nodes, d.node(key, n)) })
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
	if timeline != nil {
		d.timeline(t, "timeline", timeline)
	}
	if kind != "Lab" && len(d.errs) == 0 {
		d.fail(0, "kind", "this is no lab: write \"kind: Lab\"")
	}
}

func (d *document) node(key string, n ast.Node) (s NodeSpec) {
	// A host needs no more than its name.
	if name, ok := text(n); ok {
		return NodeSpec{Name: name}
	}
	d.mapping(key, n, fields{
		"name":   scalar(d, &s.Name, word),
		"router": scalar(d, &s.Router, yesNo),
		"switch": func(key string, n ast.Node) {
			d.fail(0, key, "switches come with the fabric: write router: true, or leave the node out")
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

func (d *document) flow(key string, n ast.Node) (f traffic.Flow) {
	f.Protocol = traffic.TCP
	d.mapping(key, n, fields{
		"name":       scalar(d, &f.Name, word),
		"from":       scalar(d, &f.From, word),
		"to":         scalar(d, &f.To, word),
		"proto":      scalar(d, &f.Protocol, func(s string) (traffic.Protocol, error) { return traffic.Protocol(s), nil }),
		"ipv6":       scalar(d, &f.IPv6, yesNo),
		"sport":      scalar(d, &f.SrcPort, number[uint16](65535)),
		"dport":      scalar(d, &f.DstPort, number[uint16](65535)),
		"download":   scalar(d, &f.Download, yesNo),
		"congestion": scalar(d, &f.Congestion, word),
		"dscp":       scalar(d, &f.DSCP, number[uint8](63)),
		"mark":       scalar(d, &f.Mark, number[uint32](1<<32-1)),
		"backlog":    scalar(d, &f.Backlog, duration),
		"payload": scalar(d, &f.Payload, func(s string) (int, error) {
			b, err := unit.ParseBytes(s)
			return int(min(b, 1<<30)), err
		}),
		"rate": func(key string, n ast.Node) { f.Schedule = d.schedule(key, n) },
	})
	if f.Schedule == nil {
		d.fail(0, key+".rate", "the flow offers nothing: write rate: 10Mbit, or {0s: 10Mbit, 5s: unlimited}")
	}
	return f
}

// schedule reads one rate, or a mapping from times to rates.
func (d *document) schedule(key string, n ast.Node) []traffic.Step {
	if _, ok := text(n); ok {
		var r unit.Rate
		scalar(d, &r, offeredRate)(key, n)
		return traffic.Constant(r)
	}
	steps := []traffic.Step{}
	d.pairs(key, n, func(at, key string, n ast.Node) {
		t, err := duration(at)
		if err != nil {
			d.fail(0, key, "%v", err)
			return
		}
		s := traffic.Step{At: t}
		scalar(d, &s.Rate, offeredRate)(key, n)
		steps = append(steps, s)
	})
	return steps
}

func offeredRate(s string) (unit.Rate, error) {
	if s == "unlimited" {
		return traffic.Unlimited, nil
	}
	return unit.ParseRate(s)
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
		return 0, fmt.Errorf("%q is not a length of time: write for example 10ms or 1.5s", s)
	}
	return t, nil
}

func number[T uint8 | uint16 | uint32](most uint64) func(string) (T, error) {
	return func(s string) (T, error) {
		v, err := strconv.ParseUint(s, 10, 64)
		if err != nil || v > most {
			return 0, fmt.Errorf("%q is not a number from 0 to %d", s, most)
		}
		return T(v), nil
	}
}
