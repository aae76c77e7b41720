package once

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/measure"
	"headgate.dev/headgate/probe/schedule"
)

// childEnv makes the test binary the child.
const childEnv = "HEADGATE_TEST_ONCE"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		if err := Run(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func startChild(t *testing.T, r Request) *Process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self)
	c.Env = append(os.Environ(), childEnv+"=1")
	p, err := Start(c, r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// One child serves, another measures to it, within the budget.
func TestServeAndMeasure(t *testing.T) {
	key := make([]byte, 32)
	rand.Read(key)
	r := Request{Key: key, Bytes: 2_000_000, Time: 5 * time.Second}
	server := startChild(t, r)
	listening, err := server.Answer()
	if err != nil || listening.Port == 0 {
		t.Fatalf("the server: %+v, %v, %v", listening, err, server.Wait())
	}
	r.Measure, r.Peer = "capacity", fmt.Sprintf("127.0.0.1:%d", listening.Port)
	client := startChild(t, r)
	got, err := client.Answer()
	if err != nil || got.Report == nil {
		t.Fatalf("the client: %+v, %v, %v", got, err, client.Wait())
	}
	if maxCost := schedule.Cost(r.Bytes); got.Sent == 0 || got.Sent > maxCost {
		t.Errorf("sent %v, want at most %v", got.Sent, maxCost)
	}
	for _, d := range probe.Directions {
		if a := got.Report.Directions[d]; got.Error == "" && (a == nil || a.Bytes == 0) {
			t.Errorf("%s: %+v", d, a)
		}
	}
	for name, p := range map[string]*Process{"client": client, "server": server} {
		if err := p.Wait(); err != nil { // the server ends after its only client
			t.Errorf("the %s: %v", name, err)
		}
	}
}

// A child that cannot measure reports why, and an upper bound of what it sent.
func TestUnknownMeasurement(t *testing.T) {
	var out bytes.Buffer
	in := strings.NewReader(`{"key": "AAAA", "bytes": "1MB", "time": 1000000000, "measure": "flood", "peer": "127.0.0.1:1"}` + "\n")
	if err := Run(t.Context(), in, &out); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, `"sent":"100kB"`) || !strings.Contains(got, `unknown measurement`) {
		t.Errorf("answer: %s", got)
	}
}

func TestInvalidRequest(t *testing.T) {
	for text, want := range map[string]string{
		"": "EOF", "{}": "EOF", "moon\n": "invalid character", `{"key": "AAAA", "bytes": "1kB"}` + "\n": "missing key, bytes or time",
	} {
		if err := Run(t.Context(), strings.NewReader(text), &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("request %q: %v, want %q", text, err, want)
		}
	}
	p := startChild(t, Request{})
	if _, err := p.Answer(); err == nil {
		t.Error("a child without a key answers")
	}
	if err := p.Wait(); err == nil || !strings.Contains(err.Error(), "missing key, bytes or time") {
		t.Errorf("Wait: %v", err)
	}
}

// Each measurement that a schedule can have exists.
func TestScheduledMeasuresExist(t *testing.T) {
	for _, name := range schedule.Measures {
		if _, err := (measure.Request{Measure: name}).Job(Request{Bytes: 1_000_000, Time: time.Second}.caps()); err != nil {
			t.Error(err)
		}
	}
}
