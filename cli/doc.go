// Package cli is the command line: one file per command, which reads flags,
// calls the packages that do the work, and prints.
//
// Exit codes are the same everywhere: 0 done, 1 failed, 2 wrong usage or
// configuration (nothing was changed), 3 not permitted. What a command was asked
// for goes to standard output, all else to standard error; -o json and -o yaml
// print the same data, for programs.
//
// A new command is a file with a function and a line in commands.
package cli
