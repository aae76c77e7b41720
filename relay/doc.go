// Package relay is the model of relay agents, which carry an application's TCP connections over many streams and
// several paths (A. Rosen, "Network Service Delivery and Throughput Optimization via Software Defined Networking",
// Clemson, 2012): which connections an agent takes, to which exit it carries them, and by which paths.
//
// Package stripe divides the bytes among streams, package host runs an agent.
package relay
