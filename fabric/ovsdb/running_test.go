package ovsdb

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"
)

// Running is what the lock of ovs-vswitchd says, which stays free for it.
func TestRunning(t *testing.T) {
	s := startServer(t)
	session, other := s.dial(), s.dial()
	for _, want := range []bool{false, true} {
		if got, err := session.Running(testContext(t)); got != want || err != nil {
			t.Errorf("running: %v, %v, want %v", got, err, want)
		}
		var lock map[string]bool
		if err := other.call(testContext(t), "lock", &lock, "ovs_vswitchd"); !want && (err != nil || !reflect.DeepEqual(lock, map[string]bool{"locked": true})) {
			t.Errorf("the lock of ovs-vswitchd: %v, %v", lock, err)
		}
	}
}

// WaitApplied ends when cur_cfg, which ovs-vswitchd would write, reaches next_cfg, and no sooner.
func TestWaitApplied(t *testing.T) {
	s := startServer(t)
	session := s.dial()
	s.vsctl("add-br", "br0")
	_, a, err := session.Connect(testContext(t), ConnectConfig{Bridges: []string{"br0"}, Controllers: []string{"tcp:192.0.2.1:6653"}})
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(testContext(t), 200*time.Millisecond)
	defer cancel()
	err = session.WaitApplied(short, a.NextCfg)
	wantError(t, err, "ovs-vswitchd has not applied configuration 1 of the OVSDB server "+s.address(), "check that it is running")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
	applied := make(chan error, 1)
	go func() { applied <- session.WaitApplied(testContext(t), a.NextCfg+1) }()
	s.vsctl("set", "open_vswitch", ".", fmt.Sprintf("cur_cfg=%d", a.NextCfg))
	if err := session.WaitApplied(testContext(t), a.NextCfg); err != nil { // the session is not blocked
		t.Error(err)
	}
	select {
	case err := <-applied:
		t.Errorf("it did not wait for the next configuration: %v", err)
	default:
	}
	s.vsctl("set", "open_vswitch", ".", fmt.Sprintf("cur_cfg=%d", a.NextCfg+5))
	if err := <-applied; err != nil {
		t.Error(err)
	}
	go func() { applied <- session.WaitApplied(testContext(t), a.NextCfg+100) }()
	s.kill()
	wantError(t, <-applied, s.address())
}
