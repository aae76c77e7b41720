package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func seed(f *testing.F, pattern string) {
	f.Helper()
	list, err := filepath.Glob(pattern)
	if err != nil || len(list) == 0 {
		f.Fatalf("%s: no files (%v)", pattern, err)
	}
	for _, file := range list {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
}

func TestCheckCgroups(t *testing.T) {
	mount := t.TempDir()
	if err := os.MkdirAll(filepath.Join(mount, "system.slice/nginx.service"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(mount, "cgroup.procs"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := Parse("x.yaml", []byte(`kind: Interface
dev: eth0
out:
  limit: 1Gbit
  groups:
    - {name: a, match: [{cgroup: /system.slice/nginx.service}]}
    - {name: b, match: [{mark: 1}, {cgroup: /system.slice/ngnix.service}]}
    - name: c
      match: [{mark: 2}]
      groups:
        - name: d
          match:
            - cgroup: /sytem.slice/nginx.service
            - cgroup: /cgroup.procs
            - cgroup: /other/deep/er
            - cgroup: `+mount+`/system.slice/nginx.service
        - {name: e, match: [{proto: udp, not: {cgroup: /x}}]}
    - {name: rest, default: true}
`))
	if err != nil {
		t.Fatal(err)
	}
	if !set.HasCgroups() {
		t.Error("HasCgroups is false")
	}
	want := `x.yaml:7: out.groups[1].match[1].cgroup: cgroup "/system.slice/ngnix.service" does not exist below M: did you mean "/system.slice/nginx.service"?
x.yaml:13: out.groups[2].groups[0].match[0].cgroup: cgroup "/sytem.slice/nginx.service" does not exist below M: did you mean "/system.slice/nginx.service"?
x.yaml:14: out.groups[2].groups[0].match[1].cgroup: cgroup "/cgroup.procs" does not exist below M: start the service that creates it, or write one that "systemd-cgls" lists
x.yaml:15: out.groups[2].groups[0].match[2].cgroup: cgroup "/other/deep/er" does not exist below M: start the service that creates it, or write one that "systemd-cgls" lists
x.yaml:16: out.groups[2].groups[0].match[3].cgroup: "M/system.slice/nginx.service" is the full path: write "/system.slice/nginx.service", which is the path below the cgroup2 mount at M
x.yaml:17: out.groups[2].groups[1].match[0].not.cgroup: cgroup "/x" does not exist below M: start the service that creates it, or write one that "systemd-cgls" lists`
	if err := set.CheckCgroups(mount); err == nil || strings.ReplaceAll(err.Error(), mount, "M") != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	for _, dir := range []string{"system.slice/ngnix.service", "sytem.slice/nginx.service", "other/deep/er", mount + "/system.slice/nginx.service", "x"} {
		if err := os.MkdirAll(filepath.Join(mount, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(mount, "cgroup.procs")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(mount, "cgroup.procs"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := set.CheckCgroups(mount); err != nil {
		t.Errorf("all cgroups exist: %v", err)
	}
}

func TestOtherMounts(t *testing.T) {
	got := otherMounts("/sys/fs/cgroup/unified", "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\nproc /proc proc rw 0 0\ncgroup2 /run/c cgroup2 rw 0 0\n")
	if strings.Join(got, " ") != "/sys/fs/cgroup/cpu /run/c" {
		t.Errorf("other hierarchies are mounted at %q", got)
	}
}

// A rule of a relay agent whose cgroup does not exist is noted, and is no mistake.
func TestCgroupNotes(t *testing.T) {
	mount := t.TempDir()
	if err := os.MkdirAll(filepath.Join(mount, "system.slice/backup.service"), 0o755); err != nil {
		t.Fatal(err)
	}
	set, err := Parse("x.yaml", []byte(`kind: Relay
name: east
key: /k
exits: [{address: "192.0.2.1:8424", destinations: 10.2.0.0/16}]
take:
  - {cgroup: /system.slice/backup.service}
  - {dport: 443}
  - {cgroup: /system.slice/bakcup.service}
`))
	if err != nil {
		t.Fatal(err)
	}
	if set.HasCgroups() {
		t.Error("the cgroup of a relay agent must exist")
	}
	notes := set.CgroupNotes(mount)
	want := `x.yaml:8: take[2].cgroup: note: the rule takes no connections until its cgroup exists: cgroup "/system.slice/bakcup.service" does not exist below M: did you mean "/system.slice/backup.service"?`
	if len(notes) != 1 || strings.ReplaceAll(notes[0].String(), mount, "M") != want {
		t.Errorf("got\n%v\nwant\n%s", notes, want)
	}
}
