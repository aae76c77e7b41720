// Package cli implements the command line: one file per command, which reads flags,
// calls the packages that do the work, and prints the result.
//
// All commands have the same exit codes: 0 done, 1 failed, 2 wrong usage or
// configuration (nothing was changed), 3 not permitted. The result of a command goes
// to standard output, everything else to standard error. With -o json and -o yaml a
// command prints the same data as JSON and YAML.
//
// To add a command, add a file with a function that creates it, and list the function
// in commands.
package cli
