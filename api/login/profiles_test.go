package login

import (
	"strings"
	"testing"
)

// A profile name has priority over a URL, and a URL of several logins is an error.
func TestFindLogin(t *testing.T) {
	const one, two = "https://10.0.0.1:8420", "https://10.0.0.2:8420"
	all := Logins{Newest: "shop", Profiles: map[string]Credentials{
		"default": {URL: one, Token: "operator"}, "shop": {URL: one, Token: "shop"},
		"a": {URL: two, Token: "a"}, "b": {URL: two, Token: "b"}, two: {URL: "https://10.0.0.3:8420", Token: "named"},
	}}
	older := Logins{Newest: "away", Profiles: map[string]Credentials{"b": {URL: two, Token: "b"}, "a": {URL: two, Token: "a"}, "c": {URL: one, Token: "c"}}}
	for _, c := range []struct {
		all                 Logins
		server, token, want string
	}{
		{all, "", "shop", ""},
		{all, "default", "operator", ""},
		{all, one, "shop", ""},
		{all, one + "/", "shop", ""},
		{all, two, "named", ""},
		{older, one, "c", ""},
		{older, two, "", "select one by its profile: a, b"},
		{older, "", "", `no login for "away"`},
		{Logins{}, "", "", `no login is stored: log in with "headgate login URL"`},
	} {
		for range 20 { // maps have no order
			l, err := c.all.Find(c.server)
			if l.Token != c.token || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%q: %+v, %v, want %q %q", c.server, l, err, c.token, c.want)
			}
		}
	}
}
