package service

import (
	"testing"
	"time"
)

// A clock that is only read does not jump.
func TestNoJump(t *testing.T) {
	before := time.Now()
	time.Sleep(10 * time.Millisecond)
	if by := jump(before, time.Now()); by.Abs() > time.Millisecond {
		t.Errorf("jump by %v", by)
	}
}
