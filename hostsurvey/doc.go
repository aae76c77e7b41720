// Package hostsurvey is what "headgate init" does: it surveys the network devices of this machine
// and the findings of package doctor, decides which devices to shape, and writes a starting
// configuration with the reason for each value.
//
// Each egress packet is shaped once, at the device where its link begins. A device of unknown
// speed, or with foreign traffic control, gets a commented-out document, and the other devices a
// reason why they are left out. The limits are slightly below the capacity of the link, so that the
// configuration can be applied unchanged.
//
// The package changes nothing on the machine, and it neither reads flags nor writes files. Package
// placement warns of rules in an existing configuration that match no packets.
//
// Units: rates in layer-2 bits per second, MTUs in bytes.
package hostsurvey
