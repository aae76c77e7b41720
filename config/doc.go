// Package config parses configuration: YAML documents, distinguished by their kind, become
// validated values. It also formats such values as YAML that parses to the same values.
//
// All errors of a configuration are reported at once, each with file, line, key and a remedy.
// The error type is Errors, except for misuse of the package itself. Checks run in two steps:
// first the text (unknown and duplicate keys, types, units), then the meaning
// (group.Interface.Resolve), whose problems name the user's keys and are traced back to lines.
//
// Units: rates are bits per second with a suffix, and shares end in %, as in package unit. The
// sizes under overhead may be bare numbers, which are bytes.
//
// The package deviates from YAML in three places, to prevent misunderstandings. Anchors,
// aliases and merge keys are rejected: an error in one changes many groups, and a small file
// can expand to a huge one. Tags are rejected. Scalars are taken as written, so that 0x7 is a
// mark and "on" is not a boolean. Files are limited to MaxFile bytes and MaxNesting levels.
package config
