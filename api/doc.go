// Package api is what operators, tenants and their programs speak to: HTTPS and JSON as
// openapi.yaml says, which was written first. Types, routes and the client in openapi.gen.go are
// made from it; every request is held against it before a handler sees it.
//
// Handlers turn a request into a decision over documents of package store, which is made again
// if somebody else was faster. Whether what is asked for fits is for group.Interface.Resolve, as
// for a file. What agents know comes through the interface Agents.
//
// A tenant sees its own groups. What is another's is not found, and what a refusal tells is
// about the tenant's own limit alone.
package api
