// Package relaylldp is the frames by which relay agents announce themselves to a network of OpenFlow switches (relay thesis, slides "Agent Discovery").
// They are LLDP frames (IEEE 802.1AB-2016, clause 8), which switches of Headgate pass on to their controller, with TLVs of Headgate's own. No
// host forwards them.
//
// A frame is not authenticated. Who reads it must know from the switch and the port where it comes from.
package relaylldp
