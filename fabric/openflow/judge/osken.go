package judge

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os/exec"
	"strings"
)

//go:embed osken.py
var oskenProgram string

// NotByOSKen are kinds of messages that os-ken 4.2.2 cannot give back, with the reason.
var NotByOSKen = map[string]string{
	"experimenter reply": "it adds 16 bytes for each, whatever the length, and reads beyond the end",
	"unknown":            "it has no parser for types that OpenFlow 1.3 does not define",
	"unknown request":    "it has no parser for types that OpenFlow 1.3 does not define",
	"unknown reply":      "it has no parser for types that OpenFlow 1.3 does not define",
}

// OSKen parses messages with os-ken, and returns for each the bytes to which it serialises it in hexadecimal, or what it raised.
// python is that of scripts/osken.
func OSKen(ctx context.Context, python string, messages [][]byte) ([]string, error) {
	c := exec.CommandContext(ctx, python, "-c", oskenProgram)
	c.Stdin = bytes.NewReader(bytes.Join(messages, nil))
	var problems bytes.Buffer
	c.Stderr = &problems
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("os-ken: %w: %s", err, &problems)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(messages) {
		return nil, fmt.Errorf("os-ken answers %d messages, want %d", len(lines), len(messages))
	}
	return lines, nil
}
