package config

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"headgate.dev/headgate/internal/golden"
)

func files(t *testing.T, pattern string) []string {
	t.Helper()
	list, err := filepath.Glob(pattern)
	if err != nil || len(list) == 0 {
		t.Fatalf("%s: no files (%v)", pattern, err)
	}
	return list
}

// TestMistakes checks the error text of each file under testdata/mistakes. Each file is named
// for its mistake.
func TestMistakes(t *testing.T) {
	for _, file := range files(t, "testdata/mistakes/*.yaml") {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			set, err := Parse(filepath.Base(file), text)
			var mistakes Errors
			if !errors.As(err, &mistakes) || len(mistakes) == 0 {
				t.Fatalf("no mistakes: %v", err)
			}
			if len(set.Interfaces) > 0 {
				t.Error("Parse returned values together with mistakes")
			}
			for _, m := range mistakes {
				if m.File != filepath.Base(file) || m.Message == "" || strings.ContainsAny(m.Message, "\n\r") {
					t.Errorf("not one line with file and message: %q", m.String())
				}
			}
			golden.Compare(t, strings.TrimSuffix(file, ".yaml")+".txt", err.Error()+"\n")
		})
	}
}

// TestValid checks what each file under testdata/valid parses to.
func TestValid(t *testing.T) {
	for _, file := range files(t, "testdata/valid/*.yaml") {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			set, err := Load([]string{file}, nil)
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			for i, one := range set.Interfaces {
				if i > 0 {
					b.WriteString("---\n")
				}
				b.Write(Format(one.Resolved.Interface))
			}
			golden.Compare(t, strings.TrimSuffix(file, ".yaml")+".txt", b.String())
			again, err := Parse("printed", b.Bytes())
			if err != nil {
				t.Fatalf("the formatted document does not parse: %v", err)
			}
			checkDuplicateSets(t, set, again)
		})
	}
}

func TestWhere(t *testing.T) {
	set, err := Load([]string{"testdata/valid/three-levels.yaml"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	i := set.Interfaces[0]
	for key, want := range map[string]int{
		"dev": 2, "out.limit": 4, "out.groups[0].match[1]": 11, "out.groups[0].groups[0].groups[1]": 18,
		"out.groups[0].groups[0].groups[1].default": 18, "out.groups[1].nothing.such": 20, "": 1,
	} {
		if file, line, column := i.Where(key); file != "testdata/valid/three-levels.yaml" || line != want || column < 1 {
			t.Errorf("%s is at %s:%d:%d, want line %d", key, file, line, column, want)
		}
	}
	if i.Name() != "testdata/valid/three-levels.yaml:1" {
		t.Errorf("the name of the document is %s", i.Name())
	}
	for n, key := range i.OutRules {
		if _, line, _ := i.Where(key); line < 11 {
			t.Errorf("rule %d (%v) has the origin %s, line %d", n, i.OutTree.Rules[n].Selector, key, line)
		}
	}
}

func TestPathsAndOrder(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	document := func(dev string) string {
		return "kind: Interface\ndev: " + dev + "\nout: {limit: 1Gbit, groups: [{name: all, default: true}]}\n"
	}
	write("d/b.yml", document("b"))
	write("d/a.yaml", document("a"))
	write("d/ignored.txt", "not: read")
	write("d/sub/deeper.yaml", "not: read")
	last := write("last.conf", document("last"))
	set, err := Load([]string{filepath.Join(dir, "d"), "-", last}, strings.NewReader(document("stdin")))
	if err != nil {
		t.Fatal(err)
	}
	var devs []string
	for _, i := range set.Interfaces {
		devs = append(devs, i.Dev)
	}
	if want := []string{"a", "b", "stdin", "last"}; !slices.Equal(devs, want) {
		t.Errorf("read in the order %v, want %v", devs, want)
	}

	write("empty/x.txt", "")
	bad := write("bad.yaml", "kind: Interface\n")
	large := write("large.yaml", strings.Repeat("#", MaxFile+1))
	_, err = Load([]string{filepath.Join(dir, "none"), filepath.Join(dir, "empty"), "-", last, last, large, bad}, iotest.ErrReader(errors.New("broken pipe")))
	want := `D/none: cannot read file: no such file or directory
D/empty: the directory has no *.yaml or *.yml file: add one, or name a file
-: cannot read file: broken pipe
D/last.conf:2: dev: "last" is already configured in D/last.conf:1: write both directions in one document
D/large.yaml: the file is larger than 4 MiB: split it
D/bad.yaml:1: dev: dev is missing: write a device name, or a pattern such as "veth*"
D/bad.yaml:1: out: neither out nor in is given: write at least one of them, with limit and groups`
	if got := strings.ReplaceAll(err.Error(), dir, "D"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestFor(t *testing.T) {
	document := func(dev string) string {
		return "---\nkind: Interface\ndev: \"" + dev + "\"\nout: {limit: 1Gbit, groups: [{name: all, default: true}]}\n"
	}
	set, err := Parse("x", []byte(document("veth*")+document("v*")+document("veth7")))
	if err != nil {
		t.Fatal(err)
	}
	for dev, want := range map[string]string{"veth7": "veth7", "veth8": "veth*", "vlan1": "v*", "eth0": ""} {
		if i, _ := set.For(dev); i.Dev != want {
			t.Errorf("%s is configured by %q, want %q", dev, i.Dev, want)
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"name", "guarantee", "ceiling", "priority", "match", "default", "groups"}
	for word, want := range map[string]string{
		"guarante": "guarantee", "garantee": "guarantee", "gaurantee": "guarantee", "min": "guarantee", "ciel": "",
		"max": "ceiling", "defualt": "default", "nmae": "name", "Name": "name", "weight": "", "": "", "g": "", "rate": "guarantee",
		strings.Repeat("x", 1000): "",
	} {
		if got := nearest(word, names); got != want {
			t.Errorf("nearest to %q is %q, want %q", word, got, want)
		}
	}
}

// TestLargeFile: a file with 4,000 groups parses. Parsing must not take longer than applying.
func TestLargeFile(t *testing.T) {
	var b strings.Builder
	b.WriteString("kind: Interface\ndev: eth0\nout:\n  limit: 10Gbit\n  groups:\n    - {name: rest, default: true}\n")
	for i := range 4000 {
		b.WriteString("    - {name: g" + strings.Repeat("0", i%9) + string(rune('a'+i%26)) + "." + itoa(i) + ", guarantee: 0.02%, match: [{proto: tcp, dport: " + itoa(i+1) + ", dst: 10.0.0.0/8}]}\n")
	}
	set, err := Parse("large", []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(set.Interfaces[0].OutTree.Nodes); n != 4001 {
		t.Errorf("%d groups", n)
	}
}
