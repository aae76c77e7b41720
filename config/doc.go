// Package config reads what a user writes, YAML documents told apart by their
// kind, and gives checked domain values; and it prints such values as YAML that
// reads back the same.
//
// Every mistake is found in one go and has the file, line and key of its place
// and a remedy: a Mistakes is the error of all that fails here but the use of
// the package itself. What is checked is the text (unknown and duplicate keys,
// types, units) and then the meaning (group.Interface.Resolve), whose problems
// are named by the user's keys and traced back to lines.
//
// Units: rates are bits per second with a suffix, shares end in %, as package
// unit has it. The bytes under overhead may be bare numbers, as nothing else
// could be meant there.
//
// The package departs from YAML in three places, each so that a file says what
// it seems to say: anchors, aliases and merge keys are refused (a slip in one
// changes many groups, and a small file can stand for a huge one); tags are
// refused; and scalars are read as they are written, so that 0x7 is a mark and
// "on" is no boolean. Files are at most MaxFile long and MaxNesting deep.
package config
