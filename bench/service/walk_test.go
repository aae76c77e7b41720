package service

import (
	"net/http"
	"testing"
)

// A foreign tenant must get 404 for valid requests.
func TestJudge(t *testing.T) {
	const group, conn = eth0 + "/out/groups/{group}", eth0 + "/connections/{connection}"
	for _, c := range []struct {
		role, method, path, operation string
		status                        int
		text                          string
		right                         bool
	}{
		{"foreign", http.MethodPut, group, "putGroup", 404, "", true},
		{"foreign", http.MethodPut, group, "putGroup", 400, "", false},
		{"foreign", http.MethodPatch, group, "patchGroup", 403, "", false},
		{"foreign", http.MethodPut, conn, "putConnection", 404, "", true},
		{"foreign", http.MethodPut, conn, "putConnection", 422, "", true}, // reach compares it
		{"foreign", http.MethodPut, conn, "putConnection", 409, "", false},
		{"foreign", http.MethodDelete, conn, "deleteConnection", 422, "", false},
		{"foreign", http.MethodPut, group, "putGroup", 422, "", false},
		{"foreign", http.MethodDelete, conn, "deleteConnection", 409, "", false},
		{"foreign", http.MethodDelete, "/v1/tokens/{token}", "deleteToken", 204, "", false},
		{"foreign", http.MethodGet, eth0 + "/connections", "listConnections", 200, `{"items":[]}`, true},
		{"foreign", http.MethodGet, eth0 + "/connections", "listConnections", 200, `{"group":"a/secret"}`, false},
		{"tenant", http.MethodPut, conn, "putConnection", 200, "", true},
		{"tenant", http.MethodPut, conn, "putConnection", 404, "", false},
		{"tenant", http.MethodPut, eth0, "putInterface", 403, "", true},
		{"operator", http.MethodPut, eth0, "putInterface", 400, "", false},
		{"viewer", http.MethodPut, group, "putGroup", 200, "", false},
		{"anonymous", http.MethodPost, "/v1/login", "login", 200, "", true},
		{"anonymous", http.MethodGet, eth0, "getInterface", 401, "", true},
	} {
		if why := judge(c.role, c.method, c.path, c.operation, c.status, c.text); (why == "") != c.right {
			t.Errorf("%s as %s with %d %s: %q", c.operation, c.role, c.status, c.text, why)
		}
	}
}
