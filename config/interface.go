package config

import (
	"errors"
	"fmt"
	"strings"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/unit"
)

// Interface is one "kind: Interface" document, validated and resolved, with the positions at
// which it was written.
type Interface struct {
	group.Resolved
	// File is the file name as given by the user; "-" is standard input.
	File string
	// Line is the first line of the document.
	Line int
	// Revision is the revision of a document that is not from a file but from a service; File is its name.
	Revision int64

	places map[string]position
	// written is the alternative device name that the document uses instead of Dev.
	written string
}

// Where returns the file, line and column of a key ("out.groups[1].match[0]"), or of the
// nearest parent key.
func (i Interface) Where(key string) (file string, line, column int) {
	d := decoder{places: i.places}
	p := d.place(key, position{line: i.Line, column: 1})
	return i.File, p.line, p.column
}

// Has reports whether the document contains a key.
func (i Interface) Has(key string) bool {
	_, written := i.places[key]
	return written
}

// Name returns "file:line" or "service, revision 7" of the document, for messages.
func (i Interface) Name() string {
	if i.Revision != 0 {
		return fmt.Sprintf("%s, revision %d", i.File, i.Revision)
	}
	return fmt.Sprintf("%s:%d", i.File, i.Line)
}

// interfaceDocument parses and validates one document. If there are errors, its result must
// not be used.
func interfaceDocument(s *source, n *node) Interface {
	d := newDecoder(s)
	var i group.Interface
	d.fields(n, "", "an Interface", []field{
		{"kind", func(*node, string) {}},
		{"dev", one(d, &i.Dev, text[string])},
		{"perspective", one(d, &i.Perspective, text[group.Perspective])},
		{"engine", one(d, &i.Engine, text[group.Engine])},
		{"quantum", one(d, &i.Quantum, group.ParseQuantum)},
		{"step", one(d, &i.Step, group.ParseStep)},
		{"overdraft", one(d, &i.Overdraft, boolean)},
		{"overhead", d.overhead(&i.Overhead)},
		{"gso", one(d, &i.GSO, text[group.GSO])},
		{"out", d.direction(&i.Out)},
		{"in", d.direction(&i.In)},
	})
	resolved, problems := i.Resolve()
	for _, p := range problems {
		if !d.followsFromError(p) {
			d.addError(d.place(p.Where, n.position), p.Where, "%s", p.Message)
		}
	}
	return Interface{Resolved: resolved, File: s.file, Line: n.line, places: d.places}
}

// followsFromError reports whether a problem is only the consequence of text that could not
// be parsed, so that correcting the text also solves the problem.
func (d *decoder) followsFromError(p group.Problem) bool {
	if p.Limit != "" && d.broken[p.Limit] {
		return true
	}
	for key := p.Where; key != ""; key = parent(key) {
		if d.broken[key] {
			return true
		}
	}
	for key := range d.broken {
		below := strings.HasPrefix(key, p.Where)
		switch {
		case !below:
		case p.Message == group.EmptyRule, p.Message == group.NothingExcluded:
			return true
		case p.Message == group.NoDefault && (strings.HasSuffix(key, ".default") || lastKey(key) == "groups"):
			return true
		}
	}
	return false
}

// overhead accepts bare numbers as bytes, because no other unit is plausible.
func (d *decoder) overhead(out *group.Overhead) func(*node, string) {
	size := func(s string) (unit.Bytes, error) {
		if s != "" && strings.Trim(s, "0123456789") == "" {
			s += "B"
		}
		return unit.ParseBytes(s)
	}
	return func(n *node, key string) {
		d.fields(n, key, "overhead", []field{
			{"frame", one(d, &out.Frame, size)},
			{"minimum", one(d, &out.Minimum, size)},
		})
	}
}

func (d *decoder) direction(out **group.Direction) func(*node, string) {
	return func(n *node, key string) {
		if n.shape == null {
			d.invalid(n, key, "%s is empty: write limit and groups under it, or remove the key", key)
			return
		}
		dir := &group.Direction{}
		*out = dir
		d.fields(n, key, key, []field{
			{"limit", one(d, &dir.Limit, unit.ParseRate)},
			{"spare", one(d, &dir.Spare, text[group.Spare])},
			{"groups", d.groups(&dir.Groups)},
		})
		limit := join(key, "limit")
		if _, given := d.places[limit]; !given && !d.broken[limit] && !d.broken[key] {
			d.invalid(n, limit, "limit is missing: write the rate of the link, for example limit: 1Gbit")
		}
		if d.broken[limit] {
			dir.Limit = unit.MaxRate // so that the groups can still be validated
		}
	}
}

func (d *decoder) groups(out *[]group.Group) func(*node, string) {
	return func(n *node, key string) {
		d.each(n, key, "a group", func(n *node, key string) {
			var g group.Group
			d.fields(n, key, "a group", []field{
				{"name", one(d, &g.Name, text[string])},
				{"guarantee", one(d, &g.Guarantee, amount("guarantee"))},
				{"ceiling", one(d, &g.Ceiling, ceiling)},
				{"priority", one(d, &g.Priority, priority)},
				{"match", d.match(&g.Match)},
				{"default", one(d, &g.Default, boolean)},
				{"join", oneOrMore(d, &g.Join, users)},
				{"tenant", one(d, &g.Tenant, tenantName)},
				{"each", d.client(&g.Each)},
				{"clients", one(d, &g.Clients, clients)},
				{"groups", d.groups(&g.Groups)},
			})
			name := join(key, "name")
			if _, given := d.places[name]; !given && !d.broken[name] && !d.broken[key] {
				d.invalid(n, name, "the group has no name: write one, for example name: web")
			}
			*out = append(*out, g)
		})
	}
}

func tenantName(s string) (string, error) {
	if !serverNames.MatchString(s) {
		return "", fmt.Errorf("%q is not the name of a tenant: \"headgate tenant list\" prints the names", s)
	}
	return s, nil
}

func amount(what string) func(string) (group.Amount, error) {
	return func(s string) (a group.Amount, err error) {
		if strings.HasSuffix(strings.TrimSpace(s), "%") {
			a.Share, err = unit.ParseShare(strings.TrimSpace(s))
			return a, err
		}
		if a.Rate, err = unit.ParseRate(s); err != nil {
			err = fmt.Errorf("%q is not a %s: write %s", s, what, remedy(s))
		}
		return a, err
	}
}

// remedy suggests a corrected amount, with the user's number if there is one.
func remedy(s string) string {
	if s != "" && len(s) < 10 && strings.Trim(s, "0123456789") == "" {
		return fmt.Sprintf("%s%% for a share, or a rate such as %sMbit", s, s)
	}
	return "a share such as 40%, or a rate such as 100Mbit"
}

func ceiling(s string) (group.Amount, error) {
	a, err := amount("ceiling")(s)
	if err == nil && a.IsZero() {
		err = errors.New("a ceiling of 0 would stop the group: write the rate that the group must never exceed, or remove ceiling")
	}
	return a, err
}

func priority(s string) (int, error) {
	n, err := number(s, 31)
	if err != nil {
		return 0, fmt.Errorf("%q is not a priority: write 0 (served first) to %d", s, group.MaxPriority)
	}
	return int(n), nil
}

// client parses "src/32", or a list with the lengths for IPv4 and IPv6.
func (d *decoder) client(out *group.Each) func(*node, string) {
	return func(n *node, key string) {
		var parts []string
		oneOrMore(d, &parts, func(s string) ([]string, error) { return []string{s}, nil })(n, key)
		if d.broken[key] || len(parts) == 0 {
			return
		}
		e, err := group.ParseEach(strings.Join(parts, ","))
		if err != nil {
			d.invalid(n, key, "%v", err)
			return
		}
		*out = e
	}
}

func clients(s string) (int, error) {
	n, err := number(s, 31)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q is not a number of clients: write how many may be active at the same time, 1 to %d", s, group.MaxClients)
	}
	return int(n), nil
}
