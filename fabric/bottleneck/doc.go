// Package bottleneck finds the links of a network that carry less than their capacity says, from what measurements of paths between hosts have
// given. It is pure.
//
// A path gives the least of what its links give, the lines of both hosts among them. So a link gives at least what any path over it gave, and one of the
// links of a path gives no more than the path did. If a link of the path has no more capacity than that, or an unknown one, nothing is wrong. Else the
// weak link is found if all others of the path are known to give more. Where several remain, all of them are named, and none is taken to be
// the weak one: a measurement between other hosts can tell. If one link is what all lists of suspects have in common, it is Likely, which proves nothing: lines
// of hosts that all have the same limit look the same.
//
// Some measurements are wrong, and show more than a path gives. They are left out if more others, that agree, contradict them.
//
// Measurements have errors and are of different times: rates within Tolerance of each other are the same.
package bottleneck
