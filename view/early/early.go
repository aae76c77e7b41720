// Package early is initialised before bubbletea, and prevents bubbletea's query of
// the terminal's background colour.
//
// bubbletea v1 queries the terminal at program start, for every command
// (tea_init.go). On a terminal that does not respond, such as a serial line or a
// script's pseudo-terminal, each headgate command would wait for five seconds.
// Package termenv does not query if CI is set in the environment
// (termenv.Output.isTTY). So this package sets CI during package initialisation, and
// package view unsets it.
//
// The initialisation order is defined by Go: packages are initialised in the order of
// their paths, as soon as their imports are (Go specification, "Program
// initialization"). This package imports only os. bubbletea imports os/exec and
// os/signal, which come later in the order. TestTerminalNotQueried tests the order.
package early

import "os"

const name = "CI"

var ours bool

func init() {
	if _, set := os.LookupEnv(name); !set {
		ours = os.Setenv(name, "1") == nil
	}
}

// Done unsets CI, if this package set it.
func Done() {
	if ours {
		_ = os.Unsetenv(name)
		ours = false
	}
}
