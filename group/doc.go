// Package group is the model of bandwidth groups on one interface: the guarantee and ceiling of
// each group per direction, and the rules that assign packets to groups.
//
// The design follows the bwaas seed (chapter III): the limit of a link is divided among groups
// of connections, each with a guaranteed share. Unused guarantee is lent to other groups and
// returned when the owner has demand. Additions to the seed: ceilings, nested groups (three
// levels), three spare policies, rules that assign packets by their fields, and both IP
// versions.
//
// An Interface is the user's configuration, with shares as percentages. Resolve validates an
// Interface and returns Trees. In a Tree, every share is a rate, and the rules are one list in
// order of precedence. Enforcement and explain work on Trees. Rates are layer-2 bits per
// second.
//
// The package is independent of the kernel and imports only unit.
package group
