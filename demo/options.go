package demo

import (
	"io"
	"log/slog"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
)

// Options are what a demo needs of the program.
type Options struct {
	Engine group.Engine
	Fast   bool   // short phases, measured with a larger tolerance
	Seed   uint64 // of the network of RunNetwork
	Keep   bool   // Run keeps the network, the service and the groups at the end

	// Out shows the progress as lines. If Width is not 0, Out is a terminal with so many
	// columns, and Run shows a live view on it, with the keys from In.
	Out   io.Writer
	In    io.Reader
	Width int

	// Observe and Clear read and remove Headgate's traffic control of a device in the current
	// network namespace.
	Observe func(dev string) (shaper.State, error)
	Clear   func(dev string) error
	// Env returns environment variables that make commands of this program keep their state
	// in a directory, and the sockets of relay agents in another one.
	Env func(state, relays string) []string
	// Log returns the handler that formats other packages' warnings, which Run shows.
	Log func(io.Writer) slog.Handler
}
