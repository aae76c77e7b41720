// Package clients has no code, only tests: generated clients of the API in TypeScript and Python call every
// operation of api/openapi.yaml on a running controller, and the programs of docs/tenants.md run.
//
// scripts/clients generates the clients. typescript/operations.ts and python/operations.py call the operations.
package clients
