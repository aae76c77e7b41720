// Command headgate divides, measures and reserves bandwidth. See package cli.
package main

import (
	"os"

	"headgate.dev/headgate/cli"
)

func main() {
	os.Exit(cli.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
