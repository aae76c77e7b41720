package ovsdb

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Clients that connect the same bridge at once give it each controller once.
func TestConnectConcurrently(t *testing.T) {
	s := startServer(t)
	s.vsctl("init", "--", "add-br", "br0")
	before := configuration(s)
	var all sync.WaitGroup
	for range 4 {
		session := s.dial()
		all.Go(func() {
			want := ConnectConfig{Bridges: []string{"br0"}, Controllers: []string{"tcp:192.0.2.1:6653", "tcp:192.0.2.2:6653"}}
			if _, _, err := session.Connect(testContext(t), want); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := s.vsctl("get-controller", "br0"); got != "tcp:192.0.2.1:6653\ntcp:192.0.2.2:6653" {
		t.Errorf("ovs-vsctl lists the controllers %q", got)
	}
	for range 4 {
		session := s.dial()
		all.Go(func() {
			if _, _, err := session.Disconnect(testContext(t), []string{"br0"}, false); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if now := configuration(s); now != before {
		t.Errorf("the configuration is\n%s, want\n%s", now, before)
	}
}

// Bridges and columns that a change does not name stay as they are, and the database's log says who made it.
func TestConnectLeavesTheRest(t *testing.T) {
	s := startServer(t)
	s.vsctl("add-br", "theirs", "--", "add-port", "theirs", "eth9", "--", "set-controller", "theirs", "tcp:192.0.2.9:6653",
		"--", "add-br", "br0", "--", "add-port", "br0", "eth1", "tag=5",
		"--", "set", "bridge", "br0", "external_ids:a=b", "other_config:hwaddr=02:00:00:00:00:01", "stp_enable=true")
	of := func(commands ...string) (out string) {
		for _, c := range commands {
			out += s.vsctl(strings.Fields(c)...) + "\n"
		}
		return out
	}
	rest := []string{"list bridge theirs", "list controller", "list port", "list interface"}
	before := of(rest...)
	session := s.dial()
	mustConnect(t, session, ConnectConfig{Bridges: []string{"br0"}, Controllers: []string{"tcp:192.0.2.1:6653"}})
	want := "b\n\"02:00:00:00:00:01\"\ntrue\neth1\n"
	if got := of("get bridge br0 external_ids:a", "get bridge br0 other_config:hwaddr", "get bridge br0 stp_enable", "list-ports br0"); got != want {
		t.Errorf("the bridge has %q, want %q", got, want)
	}
	if _, _, err := session.Disconnect(testContext(t), []string{"br0"}, false); err != nil {
		t.Fatal(err)
	}
	if now := of(rest...); now != before {
		t.Errorf("the rest was\n%s, is\n%s", before, now)
	}
	log, err := exec.Command("ovsdb-tool", "show-log", filepath.Join(s.dir, "conf.db")).CombinedOutput()
	if err != nil || !strings.Contains(string(log), "headgate: connect br0 to tcp:192.0.2.1:6653") || !strings.Contains(string(log), "headgate: disconnect br0") {
		t.Errorf("the database's log lacks a comment: %v\n%s", err, log)
	}
}

// What the server rejects is an error with its words, and changes nothing.
func TestChangeRejected(t *testing.T) {
	s := startServer(t)
	s.vsctl("add-br", "br0", "--", "set", "bridge", "br0", "fail_mode=secure",
		`external_ids:headgate-before="{\"settings\":{\"fail_mode\":[\"set\",[]]},\"rows\":[{\"target\":\"tcp:192.0.2.1\",\"connection_mode\":\"sideways\"}]}"`)
	before := configuration(s)
	_, done, err := s.dial().Disconnect(testContext(t), []string{"br0"}, false)
	wantError(t, err, "cannot call transact of the OVSDB server "+s.address(), "insert into Controller: constraint violation", "sideways")
	var rejected *serverError
	if !errors.As(err, &rejected) || rejected.code != constraintViolation || done.Changed {
		t.Errorf("the error is %#v, and the change %+v", err, done)
	}
	if now := configuration(s); now != before {
		t.Errorf("a rejected change has changed\n%s\nto\n%s", before, now)
	}
}
