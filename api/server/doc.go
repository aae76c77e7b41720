// Package server implements the HTTP API of the controller for operators, tenants and their programs: JSON over
// HTTPS as openapi.yaml specifies it. The routes in openapi.gen.go are generated from it, as the types in
// package client are. Every request is validated against the specification before a handler gets it.
//
// Handlers turn a request into a transaction over documents of package store. The store runs the
// transaction again after a conflict with a concurrent change. group.Interface.Resolve checks an
// interface, as it does for a configuration file. The state that agents report comes through the
// interface Agents.
//
// A tenant sees only its own groups. A resource of another tenant is answered with 404, and a refusal
// mentions only the tenant's own limits.
package server
