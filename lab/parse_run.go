package lab

import (
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

func (d *document) program(key string, n ast.Node) (p Program) {
	d.mapping(key, n, fields{
		"name":    scalar(d, &p.Name, word),
		"node":    scalar(d, &p.Node, word),
		"command": d.words(&p.Command),
	})
	return p
}

// timeline reads the events in their order. The properties that an event sets are added to those that
// the link had before.
func (d *document) timeline(t *Topology, key string, n ast.Node) {
	names := t.LinkNames()
	now := map[string]*[2]Path{}
	for i, l := range t.Links {
		now[names[i]] = &[2]Path{l.Forward, l.Back}
	}
	d.list(key, n, func(key string, n ast.Node) {
		t.Timeline = append(t.Timeline, d.event(key, n, now))
	})
}

func (d *document) event(key string, n ast.Node, now map[string]*[2]Path) (e Event) {
	var direction string
	var set ast.Node
	given := map[string]bool{}
	d.mapping(key, n, fields{
		"at":        func(key string, n ast.Node) { given["at"] = true; scalar(d, &e.At, duration)(key, n) },
		"link":      scalar(d, &e.Link, word),
		"direction": scalar(d, &direction, word),
		"set":       func(_ string, n ast.Node) { set = n },
		"start":     scalar(d, &e.Start, word),
		"stop":      scalar(d, &e.Stop, word),
	})
	if !given["at"] {
		d.fail(0, key+".at", "no time: write for example at: 10s")
	}
	if direction != "" && !slices.Contains(directions[:], direction) {
		d.fail(0, key+".direction", "%q is not a direction: write forward or back, or leave it out for both", direction)
	}
	if e.Link == "" {
		if set != nil || direction != "" {
			d.fail(0, key+".link", "no link: write link and its name")
		}
		return e
	}
	paths := now[e.Link]
	if paths == nil {
		paths = &[2]Path{} // Topology.problems reports this
	}
	if set == nil {
		return e
	}
	for dir, to := range []**Path{&e.Forward, &e.Back} {
		if direction != "" && direction != directions[dir] {
			continue
		}
		errs := len(d.errs)
		d.mapping(key+".set", set, d.path(&paths[dir]))
		p := paths[dir]
		*to = &p
		if len(d.errs) > errs {
			break // the other direction has the same errors
		}
	}
	e.words = strings.TrimSpace(direction + " " + oneLine(set))
	return e
}

// oneLine returns a part of the file in one line, for output.
func oneLine(n ast.Node) string {
	return strings.Join(strings.Fields(n.String()), " ")
}
