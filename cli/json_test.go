package cli

import (
	"reflect"
	"strings"
	"testing"

	"headgate.dev/headgate/config/diff"
	"headgate.dev/headgate/explain"
	"headgate.dev/headgate/shaper"
)

// TestJSONDocument: docs/json.md has every key that show, plan, apply and explain --demand print.
func TestJSONDocument(t *testing.T) {
	text := readFile("../docs/json.md")
	seen := map[reflect.Type]bool{}
	var look func(of reflect.Type)
	look = func(of reflect.Type) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || seen[of] || of.PkgPath() == "time" {
			return
		}
		seen[of] = true
		for i := range of.NumField() {
			f := of.Field(i)
			key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !f.IsExported() || key == "-" {
				continue
			}
			if key != "" && !strings.Contains(text, "`"+key+"`") {
				t.Errorf("docs/json.md lacks `%s` of %v", key, of)
			}
			if _, own := reflect.PointerTo(f.Type).MethodByName("MarshalJSON"); !own {
				look(f.Type)
			}
		}
	}
	look(reflect.TypeFor[shaper.State]())
	look(reflect.TypeFor[diff.Entry]())
	look(reflect.TypeFor[explain.Division]())
}
