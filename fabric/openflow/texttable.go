package openflow

import (
	"fmt"
	"strings"
)

// String is the features of a table, each property on a line of its own.
func (t TableFeatures) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "table %d (%q): metadata: match=%#x write=%#x config=%#x max_entries=%d", t.Table, t.Name, t.MetadataMatch, t.MetadataWrite, t.Config, t.MaxEntries)
	for _, p := range t.Properties {
		b.WriteString("\n    " + p.String())
	}
	return b.String()
}

// String is such as "next tables: 1,2".
func (p TableProperty) String() string {
	var words []string
	for _, i := range p.Instructions {
		words = append(words, i.Type.String())
	}
	for _, t := range p.Tables {
		words = append(words, t.String())
	}
	for _, a := range p.Actions {
		words = append(words, a.Type.String())
	}
	for _, f := range p.Fields {
		s := f.ID.String()
		if f.Masked {
			s += "/mask"
		}
		words = append(words, s)
	}
	if len(p.Body) > 0 {
		words = append(words, fmt.Sprintf("%x", p.Body))
	}
	return p.Kind.String() + ": " + strings.Join(words, ",")
}

// String is such as "next tables (miss)".
func (t TablePropertyType) String() string {
	switch t {
	case TableMatch:
		return "match"
	case TableWildcards:
		return "wildcards"
	case TableExperimenter:
		return "experimenter"
	case TableExperimenterMiss:
		return "experimenter (miss)"
	}
	s := word(t/2, "instructions", "next tables", "write actions", "apply actions", "", "", "write set-field", "apply set-field")
	switch {
	case t > TableApplySetFieldMiss || s == "":
		return fmt.Sprintf("property %d", uint16(t))
	case t%2 == 1:
		return s + " (miss)"
	}
	return s
}
