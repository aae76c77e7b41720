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

// Without the newest login the only one that is left is the newest, and of several none is.
func TestRemoveLogin(t *testing.T) {
	all := Logins{Newest: "b", Profiles: map[string]Credentials{"a": {Token: "1"}, "b": {Token: "2"}, "c": {Token: "3"}}}
	if _, err := all.Remove("x"); err == nil || !strings.Contains(err.Error(), `no login has the profile "x"`) {
		t.Errorf("a profile that does not exist: %v", err)
	}
	if l, err := all.Remove("b"); err != nil || l.Token != "2" || all.Newest != "" {
		t.Errorf("removed %+v, %v; the newest is %q", l, err, all.Newest)
	}
	if _, err := all.Find(""); err == nil || !strings.Contains(err.Error(), "the newest login was removed: select another one by its profile: a, c") {
		t.Errorf("without a newest login: %v", err)
	}
	if l, err := all.Remove("a"); err != nil || l.Token != "1" {
		t.Errorf("removed %+v, %v", l, err)
	}
	all.Newest = "c"
	all.Profiles["d"] = Credentials{Token: "4"}
	if _, err := all.Remove("c"); err != nil || all.Newest != "d" {
		t.Errorf("the newest is %q, %v", all.Newest, err)
	}
	if _, err := all.Remove("d"); err != nil || all.Newest != "" {
		t.Errorf("the newest is %q, %v", all.Newest, err)
	}
	if _, err := all.Remove(""); err == nil || !strings.Contains(err.Error(), "no login is stored") {
		t.Errorf("without a login: %v", err)
	}
}
