package controller

import (
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"headgate.dev/headgate/api"
)

// Each operation whose response is made of the reports of all agents has a merge function, and no other has.
func TestMerges(t *testing.T) {
	spec, err := openapi3.NewLoader().LoadFromData(api.Specification())
	if err != nil {
		t.Fatal(err)
	}
	merged := 0
	for path, item := range spec.Paths.Map() {
		for method, o := range item.Operations() {
			if o.Extensions["x-agents"] != "all" {
				continue
			}
			merged++
			if merges[o.OperationID] == nil || method != "GET" || strings.Contains(path, "{") {
				t.Errorf("%s %s has no merge function", method, path)
			}
		}
	}
	if merged != len(merges) {
		t.Errorf("%d merge functions, %d operations", len(merges), merged)
	}
}
