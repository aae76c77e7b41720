// Package explain evaluates the rules and assignments of a device for one packet: which rule matches and where it
// was written, the group, and the kernel's class. It also computes the rates that the groups of a device get for
// given demands (Divide).
//
// It reads no kernel and no file. The caller passes the actual state, the configuration, or both. Matching is
// that of package group, against which the classifiers of the engines are tested. Rates are those of
// share.AllocateLinks, against which engine htb is tested; borrowed and lent bandwidth follows from them by
// usage.Account.
//
// Divide does not model control traffic, the ceilings of single clients of a group with each:, or how fast a
// sender adapts to its rate.
package explain
