// Package once runs one measurement, of both directions within a budget, in a child process, so that
// other work of its parent does not disturb the measurement. The parent calls Start, the child Run.
//
// The parent writes a Request as one line of JSON to the child's standard input, and keeps the input
// open as long as it waits: at its end the child exits. The child writes an Answer a line to its
// standard output. Which program the child is, and with which arguments it calls Run, is the parent's
// choice.
//
// Units: bytes are of layer 2.
package once
