// Package client calls the controller's HTTP API: JSON over HTTPS as openapi.yaml specifies it. The types, and
// Client with one method for each operation, are generated. Decode gives the value or the error of a response,
// ListAll all pages of a list, and Events the changes as they are made.
//
//	c, err := client.NewClient(url, client.WithHTTPClient(pinned), client.WithRequestEditorFn(token))
//	groups, err := client.Decode[client.GroupList](c.ListGroups(ctx, "h1", "eth0"))
//
// Package login makes a Client from a login that "headgate login" has stored. The package imports nothing else
// of Headgate, so that a program which uses it contains no part of the service.
package client
