// Package e2e has the end-to-end tests: they use the whole program by what its users have (commands, files,
// the API), on real kernels, links and traffic, and nothing unexported of package cli. Tests of one command's
// flags and output, with a fake kernel, are in cli.
//
// The program is this test binary: with selfEnv set it is headgate, also for the processes that headgate
// starts itself.
package e2e

import (
	"flag"
	"os"
	"testing"

	"headgate.dev/headgate/cli"
)

// selfEnv makes the test binary run as headgate, for tests that run it in other network
// namespaces.
const selfEnv = "HEADGATE_TEST_SELF"

// Exit codes of all commands (docs/commands.md).
const (
	exitOK           = 0
	exitFailed       = 1
	exitUsage        = 2
	exitNotPermitted = 3
)

// result is the end of a command.
type result struct {
	code     int
	out, err string
}

func TestMain(m *testing.M) {
	if os.Getenv(selfEnv) != "" {
		os.Exit(cli.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	// Parallel tests spend most of their time waiting, so 4 run at once on any machine.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
