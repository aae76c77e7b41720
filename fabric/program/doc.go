// Package program is the desired state of switches: which flows, groups and meters a switch should have, how they differ from
// what it has, and the messages that change the one into the other.
//
// Diff is a function of what should be and what the switch has reported, so that a controller without memory repairs a switch
// after any failure: a restart of either, a lost message, another controller's change, or a switch that has forgotten everything.
// What is right is not touched: a flow that stays keeps its counters, and a meter that stays keeps its tokens.
//
// A flow is ours if its cookie says so, a group or meter if its number is in a range. What is not ours is never changed; where a flow
// has the place of one of ours, that is a Collision, and ours is not sent.
package program
