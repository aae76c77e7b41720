// Package group is the model of bandwidth groups on one interface: who may send
// how much in each direction, and which packets belong to whom.
//
// The idea is the bwaas seed's (chapter III): a link's limit is divided among
// groups of connections, each with a guaranteed share; what a group leaves idle
// is lent to the others and taken back when its owner wants it. Beyond the seed:
// ceilings, groups inside groups (three levels), three ways to lend, rules that
// choose the group by packet fields, and both IP versions.
//
// An Interface is what a user asks for, with shares as percentages. Resolve
// checks it and gives Trees, in which every share is a rate and every rule a
// flat list in order of precedence; all that enforces or explains works on
// Trees. Rates are layer-2 bits per second.
//
// The package knows nothing of kernels: it imports unit alone.
package group
