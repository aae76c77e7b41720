package server

import (
	"net/http"
	"time"

	"headgate.dev/headgate/store"
)

const (
	// sessionCookie is the cookie of a session. The cookie contains the token and is hidden from scripts. The
	// prefix __Host- makes browsers send the cookie only to this origin and only over TLS (RFC 6265bis,
	// 4.1.3.2).
	sessionCookie = "__Host-headgate"
	// sessionHeader is required for every change: pages of other sites cannot set the header without a CORS
	// preflight.
	sessionHeader = "X-Headgate-Session"
	// sessionLife is the maximum age of the cookie, chosen by this project. The cookie never outlives the token.
	sessionLife = 12 * time.Hour
)

// Sessions authenticates requests with a session cookie by the token in it. Browsers also send the cookie
// with requests from pages of other sites, so that cross-origin requests are rejected and every change
// requires the session header.
func Sessions(next http.Handler) http.Handler {
	origins := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := r.Cookie(sessionCookie)
		if err == nil && r.Header.Get("Authorization") == "" {
			if err := origins.Check(r); err != nil {
				problem(w, r, refuse(http.StatusForbidden, "cross-origin requests with a session are rejected"))
				return
			}
			if r.Method != http.MethodGet && r.Method != http.MethodHead && r.Header.Get(sessionHeader) == "" {
				problem(w, r, refuse(http.StatusForbidden, "missing header %s: 1, which changes with a session require", sessionHeader))
				return
			}
			r = r.Clone(r.Context())
			r.Header.Set("Authorization", "Bearer "+c.Value)
		}
		next.ServeHTTP(w, r)
	})
}

// GetSession shows the principal of the caller.
func (s *Server) GetSession(w http.ResponseWriter, r *http.Request) {
	writeResource(w, r, principal(principalOf(r)), nil)
}

// startSession starts a session: it sets the session cookie in the client's browser.
func startSession(w http.ResponseWriter, t store.Token, secret string) error {
	if t.Role == store.Agent {
		return refuse(http.StatusForbidden, "a token of the role agent cannot start a session: it can only be used to join")
	}
	life := min(sessionLife, time.Until(t.Expires))
	http.SetCookie(w, session(secret, int(life.Seconds())))
	return nil
}

// DeleteSession ends a session: it removes the session cookie.
func (s *Server) DeleteSession(w http.ResponseWriter, _ *http.Request) {
	http.SetCookie(w, session("", -1))
	w.WriteHeader(http.StatusNoContent)
}

// session returns the session cookie with a token and its maximum age in seconds, negative to remove it.
func session(secret string, seconds int) *http.Cookie {
	return &http.Cookie{Name: sessionCookie, Value: secret, Path: "/", MaxAge: seconds, Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode}
}
