// Package unit holds the three quantities a user writes: a Rate in bits per
// second, a number of Bytes, and a Share in per cent. Each parses from and
// prints to the same text, exactly, so that a value read from a file and
// written back is the value that was read.
//
// Rates are SI (1kbit = 1000 bit/s) and always count layer-2 bytes on the wire
// unless a field says otherwise. Sizes are bytes, with binary (KiB) and decimal
// (kB) suffixes. A bare number is refused: tc reads it as bits, iperf3 as bits,
// ethtool as megabits, and a factor of eight is not worth a guess
// (docs/decisions/0003-units.md).
//
// The package imports nothing of ours.
package unit
