package remote

import (
	"fmt"
	"testing"

	"headgate.dev/headgate/api/agents"
)

// eth0 returns a document of device eth0.
func eth0(revision int64, text string) *agents.Interface {
	return &agents.Interface{Dev: "eth0", Revision: revision, Document: []byte(text)}
}

// limited returns a valid document of eth0.
func limited(limit string) string {
	return fmt.Sprintf(`{"dev": "eth0", "out": {"limit": %q, "groups": [{"name": "rest", "default": true}]}}`, limit)
}

// A document of a newer controller that this version cannot parse is reported, and the previous one
// stays, also after a restart, until a document can be parsed or is deleted.
func TestUnknownDocumentsRemoveNothing(t *testing.T) {
	dir := t.TempDir()
	intent, err := OpenIntent(dir)
	if err != nil {
		t.Fatal(err)
	}
	revision := int64(0)
	obey := func(d *agents.Desired) {
		t.Helper()
		revision++
		d.Fence = &agents.Fence{Epoch: 1, Revision: revision}
		if _, err := intent.Store(d); err != nil {
			t.Fatal(err)
		}
	}
	has := func(when, limit string, problem bool) {
		t.Helper()
		for range 2 {
			all, errs := intent.Interfaces()
			got := ""
			if len(all) == 1 {
				got = all[0].OutTree.Limit.String()
			}
			if got != limit || (errs["eth0"] != nil) != problem {
				t.Errorf("%s: limit is %q with the errors %v, want %q", when, got, errs, limit)
			}
			if intent, err = OpenIntent(dir); err != nil { // restarted
				t.Fatal(err)
			}
		}
	}
	interfaces := func(text string) *agents.Desired {
		return &agents.Desired{Interfaces: []*agents.Interface{eth0(revision+1, text)}}
	}
	const unknown, strange = `{"dev": "eth0", "perspective": "moon", "out": {"limit": "10Mbit"}}`, `{"dev": "eth0", "out": ["10Mbit"]}`
	obey(interfaces(unknown))
	has("first", "", true)
	obey(interfaces(limited("20Mbit")))
	has("valid", "20Mbit", false)
	obey(interfaces(unknown))
	has("an unknown value", "20Mbit", true)
	obey(interfaces(strange))
	has("an unknown type after that", "20Mbit", true)
	obey(&agents.Desired{Interfaces: []*agents.Interface{{Dev: "eth0", Revision: revision}}})
	has("repeated", "20Mbit", true)
	obey(interfaces(limited("30Mbit")))
	has("valid again", "30Mbit", false)
	obey(interfaces(strange))
	obey(&agents.Desired{})
	has("deleted", "", false)

	sets := func(text string) *agents.Desired {
		return &agents.Desired{Collectives: []*agents.Document{{Name: "db", Text: text}}}
	}
	runs := func(when string, cgroup string, problem bool) {
		t.Helper()
		for range 2 {
			all, errs := intent.Collectives()
			got := ""
			if len(all) == 1 {
				got = all[0].Cgroup
			}
			if got != cgroup || (errs["db"] != nil) != problem {
				t.Errorf("%s: the set has the cgroup %q with the errors %v, want %q", when, got, errs, cgroup)
			}
			if intent, err = OpenIntent(dir); err != nil {
				t.Fatal(err)
			}
		}
	}
	const set = "kind: Collective\nname: db\ncgroup: /%s\nmatch: [{dport: 5001}]\n"
	obey(sets("kind: Moon\n"))
	runs("first", "", true)
	obey(sets(fmt.Sprintf(set, "a")))
	runs("valid", "/a", false)
	obey(sets("kind: Moon\n"))
	runs("an unknown kind", "/a", true)
	obey(sets("kind: Sun\n"))
	runs("another unknown kind after that", "/a", true)
	obey(sets(fmt.Sprintf(set, "b")))
	runs("valid again", "/b", false)
	obey(&agents.Desired{})
	runs("deleted", "", false)
}
