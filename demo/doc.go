// Package demo is what "headgate demo" does: it creates a network of namespaces with a
// controller, three hosts with an agent each and their clients, generates traffic in it, and
// compares the rates that the clients receive with the guarantees. Package demo/scenario has
// the network, the groups and the flows.
//
//	Run    goes through all phases and returns a Result
//	Serve  keeps the service up, with traffic, for the user to log in
//	End    removes what other demos left
//
// RunNetwork and ServeNetwork do the same with a network of two sites, of which package demo/sites has the network, the traffic and the promises.
//
// The service is made of the program itself: the demo starts its executable as controller,
// agents and commands in the namespaces, as an operator does. All files are below Dir. The
// network namespace of the caller is not changed. Root is required.
//
// The package does not read flags, and it does not print the Result. What it shows while it
// runs goes to Options.Out. Rates are layer-2 bits per second.
package demo
