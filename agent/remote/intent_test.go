package remote

import (
	"fmt"
	"testing"

	"headgate/api/agents"
)

// eth0 is a document of that device.
func eth0(revision int64, text string) *agents.Interface {
	return &agents.Interface{Dev: "eth0", Revision: revision, Document: []byte(text)}
}

// limited is what a controller may say of eth0.
func limited(limit string) string {
	return fmt.Sprintf(`{"dev": "eth0", "out": {"limit": %q, "groups": [{"name": "rest", "default": true}]}}`, limit)
}

// A controller of a newer version says things that are not known here: what it said before stays
// and its words are told of, also after a restart, until it says something that is known or takes
// the document away.
func TestWhatIsNotUnderstoodTakesNothingAway(t *testing.T) {
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
		if _, err := intent.Obey(d); err != nil {
			t.Fatal(err)
		}
	}
	has := func(when, limit string, trouble bool) {
		t.Helper()
		for range 2 {
			all, troubles := intent.Interfaces()
			got := ""
			if len(all) == 1 {
				got = all[0].OutTree.Limit.String()
			}
			if got != limit || (troubles["eth0"] != nil) != trouble {
				t.Errorf("%s: it has %q with the troubles %v, want %q", when, got, troubles, limit)
			}
			if intent, err = OpenIntent(dir); err != nil { // and started again
				t.Fatal(err)
			}
		}
	}
	interfaces := func(text string) *agents.Desired {
		return &agents.Desired{Interfaces: []*agents.Interface{eth0(revision+1, text)}}
	}
	const unknown, strange = `{"dev": "eth0", "perspective": "moon", "out": {"limit": "10Mbit"}}`, `{"dev": "eth0", "out": ["10Mbit"]}`
	obey(interfaces(unknown))
	has("at first", "", true)
	obey(interfaces(limited("20Mbit")))
	has("known", "20Mbit", false)
	obey(interfaces(unknown))
	has("a value that is not known", "20Mbit", true)
	obey(interfaces(strange))
	has("a type that is not known after that", "20Mbit", true)
	obey(&agents.Desired{Interfaces: []*agents.Interface{{Dev: "eth0", Revision: revision}}})
	has("the same again", "20Mbit", true)
	obey(interfaces(limited("30Mbit")))
	has("known again", "30Mbit", false)
	obey(interfaces(strange))
	obey(&agents.Desired{})
	has("taken away", "", false)

	sets := func(text string) *agents.Desired {
		return &agents.Desired{Collectives: []*agents.Document{{Name: "db", Text: text}}}
	}
	runs := func(when string, cgroup string, trouble bool) {
		t.Helper()
		for range 2 {
			all, troubles := intent.Collectives()
			got := ""
			if len(all) == 1 {
				got = all[0].Cgroup
			}
			if got != cgroup || (troubles["db"] != nil) != trouble {
				t.Errorf("%s: the set is of %q with the troubles %v, want %q", when, got, troubles, cgroup)
			}
			if intent, err = OpenIntent(dir); err != nil {
				t.Fatal(err)
			}
		}
	}
	const set = "kind: Collective\nname: db\ncgroup: /%s\nmatch: [{dport: 5001}]\n"
	obey(sets("kind: Moon\n"))
	runs("at first", "", true)
	obey(sets(fmt.Sprintf(set, "a")))
	runs("known", "/a", false)
	obey(sets("kind: Moon\n"))
	runs("a kind that is not known", "/a", true)
	obey(sets("kind: Sun\n"))
	runs("another after that", "/a", true)
	obey(sets(fmt.Sprintf(set, "b")))
	runs("known again", "/b", false)
	obey(&agents.Desired{})
	runs("taken away", "", false)
}
