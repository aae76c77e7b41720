// Package view computes rates from the counters of shaped devices and connection sets, and
// shows them and the status of relay agents as a live screen, as tables and lines, or as JSON. "headgate top", "headgate
// show" and "headgate demo" use it.
//
// A Tracker keeps the last state of each device and returns Frames. Rates are
// differences of counters over the time between two observations, by the time
// stamps of the observations (shaper.State.At). Render draws a Frame; the result
// depends only on the frame and the size of the window. Screen is the interactive
// program: it reads keys, polls states and calls Render. Rates are layer-2 bits per
// second.
//
// LabScreen is the live view of "headgate lab run": flows and links of a lab, which
// the caller sends as frames of package lab/report.
//
// Run shows a screen on a terminal, Poll passes on a reading per interval without one, and
// the functions that begin with Write print one state.
//
// The package does not read the kernel. The caller passes states.
package view
