package diff

import (
	"strings"
	"testing"

	"headgate.dev/headgate/config"
)

func parse(t *testing.T, text string) config.Set {
	t.Helper()
	set, err := config.Parse("f.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// The entries are those of each interface and set, also of an interface that was removed.
func TestCompare(t *testing.T) {
	before := parse(t, "kind: Interface\ndev: eth0\nout: {limit: 50Mbit, groups: [{name: rest, default: true}]}\n---\nkind: Interface\ndev: eth1\nout: {limit: 50Mbit, groups: [{name: rest, default: true}]}\n"+
		"---\nkind: Collective\nname: db\ncgroup: /db\n---\nkind: Collective\nname: web\ncgroup: /web\n")
	after := parse(t, "kind: Interface\ndev: eth0\nout: {limit: 40Mbit, groups: [{name: rest, default: true}]}\n"+
		"---\nkind: Collective\nname: db\ncgroup: /db\n---\nkind: Collective\nname: web\ncgroup: /w\n---\nkind: Collective\nname: new\ncgroup: /new\n")
	var b strings.Builder
	if err := Write(&b, Compare(before, after)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"eth0: 2 changes\n  change out limit: 50Mbit -> 40Mbit\n", "eth1: ", "  remove out group rest\n", "set db: up to date\n", "set web: 1 change\n  change set web\n", "set new: 1 change\n  add    set new\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the differences lack %q:\n%s", want, b.String())
		}
	}
	if list := CompareInterfaces(before, before); len(list) != 2 || len(list[0].Changes)+len(list[1].Changes) > 0 {
		t.Errorf("of equal configurations: %+v", list)
	}
}
