package agents

import "headgate.dev/headgate/group"

// InterfaceDocument is the desired state of one interface: Interface.Document is its JSON.
type InterfaceDocument struct {
	group.Interface
	// Connections are the connections assigned to groups, by name ("tcp 10.0.0.1:443 10.0.0.2:55000").
	Connections map[string]Assignment `json:"connections,omitempty"`
}

// Assignment is the assignment of a connection to a group.
type Assignment struct {
	Group string `json:"group"`
}
