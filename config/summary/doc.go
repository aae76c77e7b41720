// Package summary describes a configuration as Headgate reads it, as JSON and for people: devices with their
// groups, ceilings and rules resolved, probe servers, connection sets, relay agents, networks and reservations.
//
// It reports no mistakes: package config does, and a Report can have them.
package summary
