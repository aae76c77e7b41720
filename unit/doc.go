// Package unit defines the three quantities of the configuration: a Rate in bits per second, a
// number of Bytes, and a Share in per cent. Each is parsed from and printed as the same text,
// exactly, so that a value that is read from a file and written back is unchanged.
//
// Rates have SI prefixes (1kbit = 1000 bit/s) and always count layer-2 bytes on the wire unless a
// field says otherwise. Sizes are bytes, with binary (KiB) and decimal (kB) suffixes. A number
// without a unit is rejected: tc reads it as bits, iperf3 as bits, ethtool as megabits, and a wrong
// guess is a factor of eight (docs/decisions/0003-units.md).
//
// The package imports no other package of Headgate.
package unit
