// Package login stores the logins of a user at services, in a file that only the user can read, and
// connects to a service with one of them.
//
// A client verifies the service with the pin of its certificate authority, which the user has from
// the operator, instead of the machine's authorities. Package api has the requests and responses.
package login
