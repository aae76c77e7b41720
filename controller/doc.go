// Package controller is the network's control loop: what the store wants goes to the agents that
// are connected, and what they tell is there for the API.
//
// Any controller serves any agent and any caller. What a host is to have follows from the store
// alone: cache.go follows it, hub.go sends each agent what it does not have yet. Only leader.go
// needs there to be one: it takes away what is over.
//
// Nothing that agents report is written to the store, and nothing is lost with a controller but
// the last seconds of rates: agents keep their own record.
package controller
