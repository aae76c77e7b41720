package probe

import "testing"

func TestParseAddress(t *testing.T) {
	for s, want := range map[string]Address{
		"server.example.org":    {"server.example.org", 4950},
		"Server.Example.ORG.":   {"server.example.org", 4950},
		"host_1:5000":           {"host_1", 5000},
		"192.0.2.7":             {"192.0.2.7", 4950},
		"192.0.2.7:5000":        {"192.0.2.7", 5000},
		"2001:DB8:0::7":         {"2001:db8::7", 4950},
		"[2001:db8::7]":         {"2001:db8::7", 4950},
		"[2001:db8::7]:4950":    {"2001:db8::7", 4950},
		"[fe80::1%eth0]:5000":   {"fe80::1%eth0", 5000},
		"::ffff:192.0.2.7":      {"192.0.2.7", 4950},
		"[::ffff:192.0.2.7]:90": {"192.0.2.7", 90},
	} {
		got, err := ParseAddress(s)
		if err != nil || got != want {
			t.Errorf("%q is %+v, %v; want %+v", s, got, err, want)
		}
		if again, err := ParseAddress(got.String()); err != nil || again != got {
			t.Errorf("%q prints as %q, which parses as %+v, %v", s, got, again, err)
		}
	}
	for _, s := range []string{"", ":5000", "host:", "host:0", "host:70000", "a b", "10.0.0", "10.0.0.300", "-x", "a..b", "[::1", "host:port", "user@host", "1:2"} {
		if got, err := ParseAddress(s); err == nil {
			t.Errorf("%q is %+v", s, got)
		}
	}
}

func FuzzParseAddress(f *testing.F) {
	f.Add("[fe80::1%eth0]:5000")
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseAddress(s)
		if err != nil {
			return
		}
		if again, err := ParseAddress(a.String()); err != nil || again != a {
			t.Errorf("%q is %+v, prints as %q, which parses as %+v, %v", s, a, a, again, err)
		}
	})
}
