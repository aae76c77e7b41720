package local_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"headgate.dev/headgate/api/local"
)

// A program assigns its own connection to a group. Without an agent it goes on: the connection stays in
// the group that the rules assign it to.
func ExampleAgent_Assign() {
	connection, err := os.Open(os.DevNull) // in place of a *net.TCPConn
	if err != nil {
		fmt.Println(err)
		return
	}
	defer connection.Close()
	agent := local.Agent{Path: "/nonexistent/agent.sock"} // the zero Agent is at local.Socket
	response, err := agent.Assign(connection, "shop/backup", "eth0")
	switch {
	case errors.Is(err, local.ErrNotRunning):
		fmt.Println("no agent is running")
	case errors.Is(err, os.ErrPermission):
		fmt.Println("the group's join does not list this user")
	case err != nil:
		fmt.Println(err)
	default:
		fmt.Println(response.Connection, "is in", response.Group)
	}
	// Output: no agent is running
}

// Programs in other languages send requests as JSON, with the connection's descriptor.
func ExampleRequest() {
	for _, r := range []local.Request{{Assign: "shop/backup", Dev: "eth0"}, {Unassign: true}} {
		text, err := json.Marshal(r)
		fmt.Println(string(text), err)
	}
	// Output:
	// {"assign":"shop/backup","dev":"eth0"} <nil>
	// {"unassign":true} <nil>
}
