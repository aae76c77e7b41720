package openflow_test

import (
	"strings"
	"testing"

	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/judge"
)

// perKind is how many messages of each kind other implementations judge.
const perKind = 100

func byOVS(t *testing.T, messages []openflow.Message) []string {
	t.Helper()
	if testing.Short() {
		t.Skip("runs ovs-ofctl")
	}
	all, err := judge.OVS(t.Context(), messages)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// ovs-ofctl prints of each message what was meant.
func TestOpenVSwitch(t *testing.T) {
	var names []string
	var all []openflow.Message
	for _, k := range judge.Kinds {
		if judge.NotByOVS[k.Name] != "" {
			continue
		}
		for _, m := range judge.Corpus(k, perKind, false) {
			names, all = append(names, k.Name), append(all, m)
		}
	}
	for i, got := range byOVS(t, all) {
		if !judge.SameToOVS(names[i], all[i], got) {
			t.Errorf("%s %d: ovs-ofctl prints\n%s\nwant\n%s", names[i], i, got, judge.Text(all[i]))
		}
	}
	t.Logf("%d messages of %d kinds", len(all), len(judge.Kinds)-len(judge.NotByOVS))
}

// ovs-ofctl gives each error the same name.
func TestOpenVSwitchErrors(t *testing.T) {
	all := judge.Errors()
	if len(all) < 100 {
		t.Errorf("%d errors", len(all))
	}
	for i, got := range byOVS(t, all) {
		if e := all[i].(*openflow.Error); !judge.Names(got, e.Name()) {
			t.Errorf("ovs-ofctl prints\n%s\nwant\n%s", got, e)
		}
	}
}

// Open vSwitch refuses a match without a field that another needs, as Check does.
func TestOpenVSwitchPrerequisites(t *testing.T) {
	all := judge.Lonely()
	if len(all) < 20 {
		t.Errorf("%d fields need others", len(all))
	}
	for i, got := range byOVS(t, all) {
		if !strings.Contains(got, "OFPBMC_BAD_PREREQ") {
			t.Errorf("%v: ovs-ofctl prints\n%s", all[i], got)
		}
	}
}

// What is different is seen: a text of another message is not that of this one.
func TestOpenVSwitchDifference(t *testing.T) {
	a, b := &openflow.EchoRequest{Data: []byte{1}}, &openflow.EchoRequest{Data: []byte{2}}
	got := byOVS(t, []openflow.Message{a})[0]
	if !judge.SameToOVS("echo-request", a, got) || judge.SameToOVS("echo-request", b, got) {
		t.Errorf("%q", got)
	}
}
