// Package controller runs the central control loop: it sends each connected agent the desired state
// from the store, and serves the API from the store and from the agents' reports.
//
// Every controller serves every agent and every API client. The desired state of a host follows
// from the store alone: cache.go watches the store, and hub.go sends each agent the documents that
// the agent does not have yet. Only leader.go, planner.go and fabric.go need a single leader, which does
// garbage collection, starts scheduled measurements, and leads the network of switches (package network).
//
// Agents' reports are not written to the store. When a controller fails, only the last seconds of
// rates are lost, because each agent keeps its own usage record.
package controller
