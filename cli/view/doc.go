// Package view turns what shaped devices count into rates, and shows them: as a
// live screen, as lines, as JSON. "headgate top" and "headgate demo" use it.
//
// A Tracker keeps the last state of each device and gives Frames: rates are
// differences of counters over the time between two observations, as the
// observations themselves stamped it (shaper.State.At). Render draws a Frame, a
// pure function of it and of the size of the window; Screen is the program around
// that, which reads keys and asks for states. Rates are layer-2 bits per second.
//
// LabScreen is the same for "headgate lab run": flows and links of a lab, which it is
// sent as LabFrames.
//
// It does not observe anything itself: the caller hands it states.
package view
