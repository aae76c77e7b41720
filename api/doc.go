// Package api has the specification of the controller's HTTP API: openapi.yaml, which is written first.
// Package client is generated from it, for programs that call the API. Package server implements it.
package api

import _ "embed"

//go:embed openapi.yaml
var specification []byte

// Specification returns the specification of the API, in OpenAPI 3.1.
func Specification() []byte { return specification }
