package logtext

import (
	"bytes"
	"log/slog"
	"testing"
)

func TestHandler(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(NewHandler(&b)).With("dev", "eth0")
	log.Debug("not shown")
	log.Info("applied")
	log.Warn("ECN is not marked", "reason", "no bpf file system")
	log.Error("failed")
	want := "headgate: applied: dev eth0\nheadgate: warning: ECN is not marked: dev eth0, reason no bpf file system\nheadgate: error: failed: dev eth0\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}
