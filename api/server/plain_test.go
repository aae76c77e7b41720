package server

import (
	"encoding/json"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	openapi "headgate.dev/headgate/api"
)

// mutants returns a document with one mistake, or none, in each.
func mutants(doc any) (all []any) {
	all = append(all, nil, true, -1.0, 0.0, 1e18, 1.5, "", "x y/..", "5Mbit", "2026-11-28T10:00:00Z", string(make([]byte, 5000)), []any{}, []any{1.0, nil}, map[string]any{}, map[string]any{"unknown": 1.0})
	with := func(put func(copied any)) {
		var copied any
		text, _ := json.Marshal(doc)
		_ = json.Unmarshal(text, &copied)
		put(copied)
		all = append(all, copied)
	}
	switch d := doc.(type) {
	case map[string]any:
		with(func(c any) { c.(map[string]any)["unknown"] = "x" })
		for key, value := range d {
			with(func(c any) { delete(c.(map[string]any), key) })
			for _, v := range mutants(value) {
				with(func(c any) { c.(map[string]any)[key] = v })
			}
		}
	case []any:
		for i, value := range d {
			for _, v := range mutants(value) {
				with(func(c any) { c.([]any)[i] = v })
			}
		}
		if len(d) > 0 {
			with(func(c any) { c.([]any)[0] = d[len(d)-1] })
			all = append(all, append(append([]any{}, d...), d...))
		}
	}
	return all
}

// TestPlainValidation: what the validator of OpenAPI 3.0 takes, that of 3.1 takes too: in the examples of all bodies, and with one mistake anywhere.
func TestPlainValidation(t *testing.T) {
	spec, err := openapi3.NewLoader().LoadFromData(openapi.Specification())
	if err != nil {
		t.Fatal(err)
	}
	taken, refused := 0, 0
	for path, item := range spec.Paths.Map() {
		for method, o := range item.Operations() {
			if o.RequestBody == nil || o.RequestBody.Value.Content["application/json"] == nil {
				continue
			}
			media := o.RequestBody.Value.Content["application/json"]
			examples := []any{media.Example}
			for _, e := range media.Examples {
				examples = append(examples, e.Value.Value)
			}
			for _, e := range append(examples, media.Schema.Value.Example) {
				if e == nil {
					continue
				}
				text, _ := json.Marshal(e)
				var doc any
				_ = json.Unmarshal(text, &doc)
				for _, m := range append(mutants(doc), doc) {
					if media.Schema.Value.VisitJSON(m, openapi3.MultiErrors()) != nil {
						refused++
						continue
					}
					taken++
					if err := media.Schema.Value.VisitJSON(m, openapi3.MultiErrors(), openapi3.EnableJSONSchema2020()); err != nil {
						shown, _ := json.Marshal(m)
						t.Fatalf("%s %s: %s is taken, although %v", method, path, shown, err)
					}
				}
			}
		}
	}
	t.Logf("%d taken, %d refused", taken, refused)
	if taken < 100 || refused < 1000 {
		t.Errorf("%d documents were taken and %d refused", taken, refused)
	}
}
