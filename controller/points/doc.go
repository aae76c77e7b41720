// Package points has the agents' part of reservations, for the controllers: the interface of a host or router at which a
// direction of a reservation is limited, the messages to its agent, and the rates that follow from the agents' reports.
// Decision 39 (docs/decisions/0039-reservations.md) lists the points of enforcement.
//
// The functions are pure, and a Collector has no clock. Rates are bit/s of layer 2.
package points
