package config

import (
	"errors"
	"strings"
	"testing"
)

// TestNamed: a document may name a device by an alternative name, and a pattern may match one;
// two documents for one device are a mistake.
func TestNamed(t *testing.T) {
	document := func(dev string) string {
		return "---\nkind: Interface\ndev: \"" + dev + "\"\nout: {limit: 1Gbit, groups: [{name: all, default: true}]}\n"
	}
	alternatives := map[string][]string{"eth0": {"enp0s3", "uplink"}, "lo": {"enloop"}, "hgi3": {"enown"}}
	set, err := Parse("x", []byte(document("uplink")+document("en*")+document("eth1")))
	if err != nil {
		t.Fatal(err)
	}
	named, err := set.WithAltNames(alternatives)
	if err != nil {
		t.Fatal(err)
	}
	for dev, want := range map[string]string{"eth0": "uplink", "enp9": "en*", "eth1": "eth1", "lo": "", "hgi3": "", "eth2": ""} {
		if i, _ := named.For(dev); i.WrittenDev() != want {
			t.Errorf("%s is configured by %q, want %q", dev, i.WrittenDev(), want)
		}
	}
	if set.Interfaces[0].Dev != "uplink" {
		t.Errorf("Named changed the original set: %q", set.Interfaces[0].Dev)
	}
	if set, err = Parse("x", []byte(document("en*"))); err == nil {
		set, err = set.WithAltNames(alternatives)
	}
	if i, _ := set.For("eth0"); err != nil || i.Dev != "en*" {
		t.Errorf("a pattern that matches an alternative name: got %q, %v", i.Dev, err)
	}
	for _, pair := range [][2]string{{"eth0", "enp0s3"}, {"enp0s3", "eth0"}, {"enp0s3", "uplink"}} {
		set, err := Parse("x", []byte(document(pair[0])+document(pair[1])))
		if err != nil {
			t.Fatal(err)
		}
		_, err = set.WithAltNames(alternatives)
		var mistakes Errors
		if !errors.As(err, &mistakes) || !strings.Contains(err.Error(), `is an alternative name of "`) || !strings.Contains(err.Error(), ": dev: ") {
			t.Errorf("%v: %v", pair, err)
		}
	}
}
