package lab

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The lab files in docs/lab.md and the flows in docs/lab-traffic.md are valid, and the two documents
// have every key.
func TestDocument(t *testing.T) {
	const head = "kind: Lab\nname: x\nnodes: [a, b]\n"
	doc := ""
	for _, d := range []struct{ file, before string }{
		{"../docs/lab.md", ""},
		{"../docs/lab-traffic.md", "kind: Lab\nname: x\nnodes: [client, server]\nlinks: [{ends: [client, server]}]\nflows:\n"},
	} {
		b, err := os.ReadFile(d.file)
		if err != nil {
			t.Fatal(err)
		}
		doc += string(b)
		files := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(b), -1)
		if len(files) < 2 {
			t.Errorf("%d files in %s", len(files), d.file)
		}
		for _, f := range files {
			if _, err := Parse(d.file, []byte(d.before+f[1])); err != nil {
				t.Error(err)
			}
		}
	}
	// The error of an unknown key lists the known ones.
	for _, text := range []string{
		"no: 1", "nodes: [{no: 1}]", "switches: [{no: 1}]",
		"links: [{no: 1}]", "links: [{addresses: {no: 1}}]", "links: [{jitter: {no: 1}}]", "links: [{loss: {no: 1}}]",
		"links: [{red: {no: 1}}]", "links: [{red: {classes: [{no: 1}]}}]", "links: [{bucket: {no: 1}}]", "links: [{bucket: {gift: {no: 1}}}]",
		"links: [{xen: {no: 1}}]", "links: [{active: {no: 1}}]", "links: [{suspension: {no: 1}}]", "links: [{cross: [{no: 1}]}]",
		"flows: [{no: 1}]", "flows: [{on_off: {no: 1}}]", "flows: [{on_off: {on: {no: 1}}}]", "flows: [{requests: {no: 1}}]", "flows: [{transfer: {no: 1}}]",
		"programs: [{no: 1}]", "timeline: [{no: 1}]",
	} {
		if strings.HasPrefix(text, "nodes") {
			text = "kind: Lab\n" + text
		} else {
			text = head + text
		}
		_, err := Parse("f", []byte(text))
		if err == nil || !strings.Contains(err.Error(), ".no: there is no such key: write one of ") && !strings.Contains(err.Error(), ": no: there is no such key: write one of ") {
			t.Errorf("%s: %v", text, err)
			continue
		}
		_, keys, _ := strings.Cut(err.Error(), "there is no such key: write one of ")
		keys, _, _ = strings.Cut(keys, "\n")
		for _, key := range strings.Split(keys, ", ") {
			if !regexp.MustCompile("`[^`\n]*\\b" + key + "\\b[^`\n]*`").MatchString(doc) {
				t.Errorf("%s is not documented (%s)", key, text)
			}
		}
	}
}
