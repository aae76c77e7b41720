// Package program is the desired state of switches: which flows, groups and meters a switch should have, how they differ from
// what it has, and the messages that change the one into the other.
//
// Diff is a function of what should be and what the switch has reported, so that a controller without memory repairs a switch
// after any failure: a restart of either, a lost message, another controller's change, or a switch that has forgotten everything.
// What is right is not touched: a flow that stays keeps its counters, and a meter that stays keeps its tokens.
//
// A flow is ours if its cookie says so, a group or meter if its number is in a range. What is not ours is never changed; where a flow
// has the place of one of ours, that is a Collision, and ours is not sent.
//
// Circuits carry reservations: classes of frames at the first switch, which pass a meter and get the label of a path (pathlabels.go), and a
// flow for each path at later ones. What a circuit lacks is in its CircuitState: it is best effort if it has no path that is up.
//
// Connectivity makes the programs that connect a network. A switch that can do less than the pipeline needs gets a form of it
// that it can have: fewer tables (Flat), outputs instead of groups, no meters (form.go). Lost describes what is then missing.
package program
