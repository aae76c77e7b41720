package service

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// may returns the expected permission of a role for an operation.
func may(role, method, operation string) bool {
	change := method != http.MethodGet
	switch {
	case operation == "getHealth" || operation == "login":
		return true
	case operation == "getSession" || operation == "deleteSession":
		return role != "anonymous"
	case operation == "signCertificate":
		return role == "agent"
	case role == "operator":
		return true
	case operation == "getRestore":
		return false // it names tokens of all
	case role == "viewer":
		return !change
	case role != "tenant" && role != "foreign":
		return false
	case slices.Contains([]string{"listTenants", "getHost", "listHistory", "listCollectives", "listCollectiveStates", "listRelays", "listRelayEnded", "getNetwork", "listNetworkEvents", "getNetworkPath", "getNetworkLinkHistory", "getNetworkConfig", "getNetworkTrace", "listSwitchFlows", "getCollective", "getPolicy", "getProbe", "getOverview",
		"getProbeSchedule", "getProbeState", "listProbeResults", "listProposals", "getReservationCalendar"}, operation):
		return false // of the whole service, or a whole host
	case !change:
		return true
	}
	// Objects in a tenant's groups, and its tokens.
	return slices.Contains([]string{"createToken", "deleteToken", "putGroup", "patchGroup", "deleteGroup", "putConnection", "deleteConnection", "createReservation", "putReservation", "deleteReservation"}, operation)
}

// connection is one of a's, in a/secret.
const connection = "tcp 10.0.0.1:443 10.1.0.2:55000"

// walked has the names in requests of the walk.
type walked struct {
	fill    *strings.Replacer // replaces names in a path by those of existing objects: of tenant a's
	request string            // for a certificate
}

// bodies are valid for everything that does not depend on this run: the result must depend on the
// caller's permissions, not on the body.
var bodies = map[string]any{
	"confirmRestore":    map[string]any{},
	"putTenant":         map[string]any{"description": "x"},
	"createToken":       map[string]any{"name": "x", "role": "viewer"},
	"putHost":           map[string]any{"description": "x"},
	"putInterface":      shared(),
	"rollBack":          map[string]any{"revision": 1},
	"putGroup":          map[string]any{"default": true},
	"patchGroup":        map[string]any{"guarantee": "1Mbit"},
	"putConnection":     map[string]any{"group": "a/secret"},
	"putCollective":     map[string]any{"document": "kind: Collective\nname: db\nmatch: [{dport: 5432}]\n"},
	"putPolicy":         map[string]any{"text": "kind: Interface\ndev: eth1\nout: {limit: 1Gbit, groups: [{name: rest, default: true}]}\n"},
	"startProbe":        map[string]any{"measure": "path", "peer": "10.0.0.2:4950"},
	"putNetworkConfig":  map[string]any{"text": "kind: Network\nname: campus\nswitches: [{id: 1}]\nlisten: [{address: \"127.0.0.1:6653\"}]\n"},
	"createReservation": reservation("x"),
	"putReservation":    reservation(""),
	"putProbeSchedule":  map[string]any{"measures": []map[string]any{{"measure": "path", "every": "6h"}}, "budget": "1GB"},
}

// reservation is a request that is valid, between hosts that the network does not have.
func reservation(name string) map[string]any {
	body := map[string]any{"rate": "1Mbit", "duration": "1h", "from": map[string]any{"host": "10.0.0.1"}, "to": map[string]any{"host": "10.0.0.2"}}
	if name != "" {
		body["name"] = name
	}
	return body
}

// body returns the request body of an operation for a role.
func (w walked) body(role, operation, login string) (any, error) {
	switch {
	case operation == "login":
		return map[string]any{"token": login}, nil
	case operation == "signCertificate":
		return map[string]any{"request": w.request}, nil
	case operation == "signSwitchCertificate":
		return map[string]any{"switches": []string{"0000000000000001"}, "request": w.request}, nil
	case operation == "putConnection" && role == "foreign": // takes it into its own group
		return map[string]any{"group": "b"}, nil
	}
	body, ok := bodies[operation]
	if !ok {
		return nil, fmt.Errorf("the walk has no request body for operation %s", operation)
	}
	return body, nil
}

// ask requests an operation with a caller's token, as a dry run where possible.
func (w walked) ask(ctx context.Context, a *asking, c caller, method, path string, o *openapi3.Operation) (int, string, error) {
	query := url.Values{}
	if o.Parameters.GetByInAndName("query", "dry_run") != nil {
		query.Set("dry_run", "true")
	}
	if o.OperationID == "getNetworkPath" {
		query.Set("from", "10.0.0.1")
		query.Set("to", "10.0.0.2")
	}
	if o.OperationID == "getNetworkTrace" {
		query.Set("packet", "broadcast")
		query.Set("from", "10.0.0.1")
	}
	if o.OperationID == "getReservationCalendar" {
		query.Set("link", "0000000000000001/1")
	}
	if o.OperationID == "getUsage" {
		query.Set("since", "2026-01-01T00:00:00Z")
		query.Set("tenant", "a")
	}
	if o.OperationID == "watchLive" {
		query.Set("see", "/v1/session")
	}
	var body any
	if o.RequestBody != nil {
		var err error
		if body, err = w.body(c.role, o.OperationID, a.token); err != nil {
			return 0, "", err
		}
	}
	other := *a
	other.token = c.token
	status, text, err := other.do(ctx, method, w.fill.Replace(path)+"?"+query.Encode(), body)
	return status, string(text), err
}

// ofTenant reports whether an operation is about an object of tenant a.
func ofTenant(path, operation string) bool {
	return operation == "getUsage" || slices.ContainsFunc([]string{"{tenant}", "{token}", "{group}", "{connection}"}, func(name string) bool { return strings.Contains(path, name) })
}

// judge describes what is wrong with a response, or returns "".
func judge(role, method, path, operation string, status int, text string) string {
	switch {
	case role == "anonymous" || role == "unknown token":
		if (status == http.StatusUnauthorized) == may("anonymous", method, operation) {
			return "an unauthenticated caller must get 401"
		}
	case !may(role, method, operation):
		if status != http.StatusForbidden {
			return "an unauthorized caller must get 403"
		}
	case role == "foreign" && operation == "putConnection" && status == http.StatusUnprocessableEntity:
		// The match of its groups does not cover the connection: reach compares the response with that
		// for an unassigned connection.
	case role == "foreign" && ofTenant(path, operation):
		if status != http.StatusNotFound {
			return "an object of another tenant must be 404"
		}
	case role == "tenant" && ofTenant(path, operation):
		if status >= 300 {
			return "the owner must be permitted"
		}
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return "the caller must be permitted"
	case status == http.StatusBadRequest:
		return "the request is invalid: this tests nothing"
	case status >= 500:
		return "the request failed"
	}
	if role == "foreign" && strings.Contains(text, "secret") && status == http.StatusOK {
		return "the response shows an object of another tenant"
	}
	return ""
}

// reach makes the foreign tenant use its own permissions on objects of a: every request must fail,
// with the response for an object that does not exist.
func (a *asking) reach(ctx context.Context, callers []caller) (asked int, told []string, err error) {
	foreign := *a
	foreign.token = callers[slices.IndexFunc(callers, func(c caller) bool { return c.role == "foreign" })].token
	const nobodys = "tcp 10.0.0.1:443 10.1.0.2:55001" // in a's match
	into := func(name string) string { return eth0 + "/connections/" + url.PathEscape(name) + "?dry_run=true" }
	at := func(path string) func(string) string { return func(string) string { return path } }
	for _, each := range []struct {
		what, method string
		path         func(name string) string
		body         func(name string) any
		theirs, none string
	}{
		{"a connection of another tenant into the own group", http.MethodPut, into, func(string) any { return map[string]any{"group": "b"} }, connection, nobodys},
		{"a connection into a group of another tenant", http.MethodPut, at(into(nobodys)), func(group string) any { return map[string]any{"group": group} }, "a/secret", "a/none"},
		{"a token for another tenant", http.MethodPost, at("/v1/tokens?dry_run=true"), func(tenant string) any {
			return map[string]any{"name": "x", "role": "viewer", "tenant": tenant}
		}, "a", "none"},
		{"a group for another tenant", http.MethodPut, at(eth0 + "/out/groups/b%2Fx?dry_run=true"), func(tenant string) any {
			return map[string]any{"tenant": tenant, "default": true}
		}, "a", "none"},
	} {
		var answers [2]int
		var texts [2]string
		for i, name := range []string{each.theirs, each.none} {
			asked++
			var text []byte
			if answers[i], text, err = foreign.do(ctx, each.method, each.path(name), each.body(name)); err != nil {
				return asked, told, err
			}
			texts[i] = strings.ReplaceAll(string(text), name, each.none)
		}
		if answers[0] < 400 || answers[0] >= 500 || answers[0] != answers[1] {
			told = append(told, fmt.Sprintf("%s: %d, but %d for an object that does not exist", each.what, answers[0], answers[1]))
		} else if each.theirs == connection && texts[0] != texts[1] {
			told = append(told, fmt.Sprintf("%s: %s, but %s for an object that does not exist", each.what, texts[0], texts[1]))
		}
	}
	return asked, told, nil
}
