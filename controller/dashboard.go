package controller

import (
	"net/http"
	"strings"

	"headgate.dev/headgate/api/server"
	"headgate.dev/headgate/web"
)

// withDashboard serves the API, with bearer tokens and browser sessions, under /v1/, and the dashboard at
// every other path.
func withDashboard(service http.Handler) http.Handler {
	service, pages := server.Sessions(service), web.Handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v1/") {
			service.ServeHTTP(w, r)
			return
		}
		pages.ServeHTTP(w, r)
	})
}
