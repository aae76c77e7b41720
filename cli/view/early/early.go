// Package early runs before bubbletea is initialised, and keeps it from asking
// the terminal for its background colour.
//
// bubbletea v1 asks when the program starts, whatever command is run
// (tea_init.go): on a terminal that does not answer, a serial line or a script's
// pseudo-terminal, every command of ours would wait five seconds. Package termenv
// does not ask where CI is set in the environment (termenv.Output.isTTY), so it is
// set for as long as packages are initialised; package view takes it back.
//
// The order is Go's own: packages are initialised in the order of their paths as
// soon as all they import is (Go specification, "Program initialization"). This
// one imports only os; bubbletea imports os/exec and os/signal, which come after
// both. TestTerminalIsNotAsked holds it.
package early

import "os"

const name = "CI"

var ours bool

func init() {
	if _, set := os.LookupEnv(name); !set {
		ours = os.Setenv(name, "1") == nil
	}
}

// Done takes the setting back.
func Done() {
	if ours {
		_ = os.Unsetenv(name)
		ours = false
	}
}
