package session

import (
	"fmt"
	"os"
	"strings"

	"headgate.dev/headgate/probe"
)

// ReadPeers reads the peers of a server from a file. The file has one peer per line, and may have empty
// lines and comments (#).
func ReadPeers(file string) (out []probe.Address, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		peer, err := probe.ParseAddress(line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
		out = append(out, peer)
	}
	return out, nil
}
