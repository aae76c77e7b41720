package server

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"headgate.dev/headgate/store"
)

// Operation is an operation of the API, with the rules of the specification's extensions. A new operation is
// registered by its entry in the specification alone.
type Operation struct {
	ID string
	// Agents is whose agents report what the response is made of.
	Agents AgentScope
	// OfLeader is true if only the leader of the controllers can answer.
	OfLeader bool
	// Polled is true if nothing announces a change of the response.
	Polled bool

	roles     []store.Role
	largeBody bool
}

// AgentScope is the set of hosts whose agents report what a response is made of (x-agents).
type AgentScope string

// The scopes: none, the host in the path ({host}), and all hosts.
const (
	NoAgents  AgentScope = ""
	HostAgent AgentScope = "host"
	AllAgents AgentScope = "all"
)

// readOperations reads the operations of the specification.
func readOperations(spec *openapi3.T) (map[*openapi3.Operation]*Operation, error) {
	all := map[*openapi3.Operation]*Operation{}
	for path, item := range spec.Paths.Map() {
		for method, o := range item.Operations() {
			op := &Operation{ID: o.OperationID, roles: []store.Role{store.Operator}}
			if method == http.MethodGet {
				op.roles = append(op.roles, store.Viewer)
			}
			for name, value := range o.Extensions {
				ok := true
				switch name {
				case "x-roles":
					op.roles, ok = readRoles(value)
				case "x-agents":
					text, _ := value.(string)
					op.Agents = AgentScope(text)
					ok = op.Agents == AllAgents || op.Agents == HostAgent && strings.HasPrefix(path, hostPath+"{host}")
				case "x-leader":
					op.OfLeader, ok = value.(bool)
				case "x-live":
					op.Polled, ok = true, value == "poll"
				case "x-large-body":
					op.largeBody, ok = value.(bool)
				default:
					ok = !strings.HasPrefix(name, "x-")
				}
				if !ok {
					return nil, fmt.Errorf("API specification: %s %s: invalid %s: %v", method, path, name, value)
				}
			}
			all[o] = op
		}
	}
	return all, nil
}

func readRoles(value any) (roles []store.Role, ok bool) {
	names, ok := value.([]any)
	for _, name := range names {
		text, _ := name.(string)
		role := store.Role(text)
		if !slices.Contains([]store.Role{store.Operator, store.Viewer, store.TenantRole, store.Agent}, role) {
			return nil, false
		}
		roles = append(roles, role)
	}
	return roles, ok
}

// permits reports whether a role may call the operation at all. The handlers check access to single resources.
func (o *Operation) permits(role store.Role) bool { return slices.Contains(o.roles, role) }

// Operation returns the operation that a request calls, nil if there is none.
func (s *Server) Operation(r *http.Request) *Operation {
	_, pattern := s.mux.Handler(r)
	_, _, o := s.find(pattern, r.Method)
	return s.operations[o]
}

// find returns the operation of a pattern of the mux, nil if there is none.
func (s *Server) find(pattern, method string) (path string, item *openapi3.PathItem, o *openapi3.Operation) {
	_, path, _ = strings.Cut(pattern, " ")
	if item = s.spec.Paths.Find(path); item == nil {
		return path, nil, nil
	}
	if method == http.MethodHead { // the server sends no body
		method = http.MethodGet
	}
	return path, item, item.GetOperation(method)
}

// unknownQuery refuses a query parameter that an operation does not have: a slip in the name of one would change what the request does.
func unknownQuery(query url.Values, item *openapi3.PathItem, o *openapi3.Operation) error {
	var known []string
	for _, p := range append(slices.Clone(item.Parameters), o.Parameters...) {
		if p.Value.In == openapi3.ParameterInQuery {
			known = append(known, p.Value.Name)
		}
	}
	slices.Sort(known)
	var fields []Field
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if slices.Contains(known, name) {
			continue
		}
		message := "unknown query parameter: this operation has none"
		if len(known) > 0 {
			message = "unknown query parameter: this operation has " + strings.Join(known, ", ")
		}
		fields = append(fields, Field{name, message})
	}
	if fields == nil {
		return nil
	}
	return &Refusal{Status: http.StatusBadRequest, Detail: "the request has an unknown query parameter", Fields: fields}
}

// methods returns the methods of a path, for a request whose method it does not have; none if there is no such path.
func (s *Server) methods(r *http.Request) (all []string) {
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		other := r.WithContext(r.Context())
		other.Method = method
		if _, pattern := s.mux.Handler(other); pattern != "/" && pattern != "" {
			all = append(all, method)
		}
	}
	return all
}

// ForwardedHeader marks a request that another controller has forwarded. Any client may set it: it only keeps this
// controller from forwarding the request in turn.
const ForwardedHeader = "Headgate-Forwarded"

// Forwarded reports whether another controller has forwarded a request.
func Forwarded(r *http.Request) bool { return r.Header.Get(ForwardedHeader) != "" }

// CopyHeader copies those of the named fields that from has.
func CopyHeader(to, from http.Header, names ...string) {
	for _, name := range names {
		if v := from.Get(name); v != "" {
			to.Set(name, v)
		}
	}
}

// hostPath is the path below which each host has a path of its own.
const hostPath = "/v1/hosts/"
