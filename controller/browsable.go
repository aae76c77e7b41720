package controller

import (
	"net/http"
	"strings"

	"headgate/api"
	"headgate/web"
)

// browsable is the API for programs and browsers, and the dashboard at every path that is not the API's.
func browsable(service http.Handler) http.Handler {
	service, pages := api.Sessions(service), web.Handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v1/") {
			service.ServeHTTP(w, r)
			return
		}
		pages.ServeHTTP(w, r)
	})
}
