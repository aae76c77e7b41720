package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// client is TypeScript for an API: a type for each schema, a function for each operation that
// answers in JSON.
func client(spec *openapi3.T) string {
	var b strings.Builder
	b.WriteString("// Made from api/openapi.yaml by \"go generate ./web\". Do not edit.\nimport { call, type Change } from \"./call\";\n")
	for _, name := range slices.Sorted(maps.Keys(spec.Components.Schemas)) {
		s := spec.Components.Schemas[name].Value
		comment(&b, "", s.Description)
		fmt.Fprintf(&b, "export type %s = %s;\n", name, typeOf(spec.Components.Schemas[name], true))
	}
	for _, path := range slices.Sorted(maps.Keys(spec.Paths.Map())) {
		item := spec.Paths.Value(path)
		operations := item.Operations()
		for _, method := range slices.Sorted(maps.Keys(operations)) {
			b.WriteString(function(path, method, item, operations[method]))
		}
	}
	return b.String()
}

var inPath = regexp.MustCompile(`\{(\w+)\}`)

func function(path, method string, item *openapi3.PathItem, o *openapi3.Operation) string {
	answer := "void"
	for status, r := range o.Responses.Map() {
		if !strings.HasPrefix(status, "2") {
			continue
		}
		if content := r.Value.Content; content["application/json"] != nil {
			answer = typeOf(content["application/json"].Schema, false)
		} else if len(content) > 0 {
			return "" // a stream
		}
	}
	var args, query []string
	change, needed := false, false
	for _, p := range append(slices.Clone(item.Parameters), o.Parameters...) {
		switch v := p.Value; {
		case v.In == "path":
			args = append(args, v.Name+": "+typeOf(v.Schema, false))
		case v.In == "query" && v.Name == "dry_run", v.In == "header":
			change = true
		case v.In == "query":
			one := v.Name + "?: " + typeOf(v.Schema, false) + " | undefined"
			if v.Required {
				one, needed = v.Name+": "+typeOf(v.Schema, false), true
			}
			query = append(query, one)
		}
	}
	var options []string
	if o.RequestBody != nil {
		for kind, content := range o.RequestBody.Value.Content {
			args = append(args, "body: "+typeOf(content.Schema, false))
			options = append(options, "body")
			if kind != "application/json" {
				options = append(options, fmt.Sprintf("kind: %q", kind))
			}
		}
	}
	if len(query) > 0 {
		slices.Sort(query)
		args = append(args, "query: { "+strings.Join(query, "; ")+" }"+map[bool]string{false: " = {}"}[needed])
		options = append(options, "query")
	}
	if change {
		args = append(args, "change?: Change")
		options = append(options, "change")
	}
	var b strings.Builder
	comment(&b, "", o.Summary)
	fmt.Fprintf(&b, "export const %s = (%s) =>\n\tcall<%s>(%q, `%s`, { %s });\n", o.OperationID, strings.Join(args, ", "), answer, method,
		inPath.ReplaceAllString(path, "$${encodeURIComponent($1)}"), strings.Join(options, ", "))
	return b.String()
}

func comment(b *strings.Builder, indent, text string) {
	if text = strings.TrimSpace(text); text != "" {
		fmt.Fprintf(b, "%s/** %s */\n", indent, strings.ReplaceAll(text, "\n", " "))
	}
}

// typeOf is a schema's type; declared is of the schema itself, not of what refers to it.
func typeOf(r *openapi3.SchemaRef, declared bool) string {
	if name, ok := strings.CutPrefix(r.Ref, "#/components/schemas/"); ok && !declared {
		return name
	}
	s := r.Value
	if len(s.AllOf) > 0 {
		var all []string
		for _, each := range s.AllOf {
			all = append(all, typeOf(each, false))
		}
		return strings.Join(all, " & ")
	}
	if len(s.OneOf) > 0 {
		var one []string
		for _, each := range s.OneOf {
			one = append(one, typeOf(each, false))
		}
		return strings.Join(one, " | ")
	}
	if len(s.Enum) > 0 {
		var all []string
		for _, each := range s.Enum {
			all = append(all, fmt.Sprintf("%q", each))
		}
		return strings.Join(all, " | ")
	}
	var types []string
	for _, t := range s.Type.Slice() {
		switch t {
		case "integer", "number":
			types = append(types, "number")
		case "array":
			types = append(types, "("+typeOf(s.Items, false)+")[]")
		case "object":
			types = append(types, object(s))
		default: // string, boolean, null
			types = append(types, t)
		}
	}
	if len(types) == 0 {
		return "unknown"
	}
	return strings.Join(types, " | ")
}

func object(s *openapi3.Schema) string {
	if len(s.Properties) == 0 {
		if s.AdditionalProperties.Schema != nil {
			return "Record<string, " + typeOf(s.AdditionalProperties.Schema, false) + ">"
		}
		return "Record<string, unknown>"
	}
	var b strings.Builder
	b.WriteString("{\n")
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		if p.Value != nil {
			comment(&b, "\t", p.Value.Description)
		}
		fmt.Fprintf(&b, "\t%s%s: %s;\n", name, map[bool]string{false: "?"}[slices.Contains(s.Required, name)], typeOf(p, false))
	}
	b.WriteString("}")
	return b.String()
}
