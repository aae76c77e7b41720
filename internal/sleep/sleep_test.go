package sleep

import (
	"context"
	"testing"
	"time"
)

func TestUntil(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	at := time.Now().Add(5 * time.Millisecond)
	if !Until(ctx, at) || time.Now().Before(at) {
		t.Error("did not wait until the time")
	}
	time.AfterFunc(time.Millisecond, cancel)
	if Until(ctx, time.Now().Add(time.Hour)) {
		t.Error("the context's end is not reported")
	}
	if Until(ctx, time.Now()) {
		t.Error("the context had ended")
	}
}
