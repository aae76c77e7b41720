// Package trace follows a frame through a network of switches, by the flows, groups and ports that the switches have now: from the
// port at which it arrives, over the links, to the hosts, the controller or the place where it is dropped.
//
// Package pipeline says what each switch does. A trace shows what is in force, whoever has set it; what should be in force is of
// package program, which names the rules of Headgate's own flows.
//
// # Out of scope
//
// A meter passes everything here. Of a group of type select each live bucket is followed, because the choice is the switch's own
// affair. What the controller does with a frame that it gets is not followed. A link that loses frames while both ports are up
// is not seen.
package trace
