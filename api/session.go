package api

import (
	"net/http"
	"time"

	"headgate/store"
)

const (
	// sessionCookie has a session: a token, where no script sees it. Of a cookie so named a browser knows
	// that it is this origin's alone, and sent by TLS alone (RFC 6265bis, 4.1.3.2).
	sessionCookie = "__Host-headgate"
	// sessionHeader is in all that changes something: no other site's page can send it unasked.
	sessionHeader = "X-Headgate-Session"
	// sessionLife is how long a browser keeps it, if the token is good for so long. Ours.
	sessionLife = 12 * time.Hour
)

// Sessions lets browsers in: what comes with a session's cookie is asked for with its token. A cookie comes
// along with what another site's page asks for as well, so that nothing is changed without the header.
func Sessions(next http.Handler) http.Handler {
	origins := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := r.Cookie(sessionCookie)
		if err == nil && r.Header.Get("Authorization") == "" {
			if err := origins.Check(r); err != nil {
				problem(w, r, refuse(http.StatusForbidden, "another site's page asks for this"))
				return
			}
			if r.Method != http.MethodGet && r.Method != http.MethodHead && r.Header.Get(sessionHeader) == "" {
				problem(w, r, refuse(http.StatusForbidden, "with a session, a change needs the header %s: 1", sessionHeader))
				return
			}
			r = r.Clone(r.Context())
			r.Header.Set("Authorization", "Bearer "+c.Value)
		}
		next.ServeHTTP(w, r)
	})
}

// GetSession says who asks.
func (s *Server) GetSession(w http.ResponseWriter, r *http.Request) {
	show(w, r, principal(principalOf(r)), nil)
}

// begin has a browser keep a token.
func begin(w http.ResponseWriter, t store.Token, secret string) error {
	if t.Role == store.Agent {
		return refuse(http.StatusForbidden, "an agent's token is for joining, and for no page")
	}
	life := min(sessionLife, time.Until(t.Expires))
	http.SetCookie(w, session(secret, int(life.Seconds())))
	return nil
}

// DeleteSession has the browser forget it.
func (s *Server) DeleteSession(w http.ResponseWriter, _ *http.Request) {
	http.SetCookie(w, session("", -1))
	w.WriteHeader(http.StatusNoContent)
}

func session(secret string, seconds int) *http.Cookie {
	return &http.Cookie{Name: sessionCookie, Value: secret, Path: "/", MaxAge: seconds, Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode}
}
