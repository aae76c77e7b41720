// Package reserved joins the reservations that end at a host's interface with the groups that are configured for it:
// each reservation becomes an adjustable group at the top of the tree, with its rate as guarantee, and with rules that
// precede all others. It is a function of its arguments.
//
// A reservation that does not fit is refused whole, with a sentence, and the others are not touched by that. Names
// cannot clash: a group of a user has no colon in its name, and each group of a reservation has.
//
// Rates are bit/s of layer 2.
package reserved
