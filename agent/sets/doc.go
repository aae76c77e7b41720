// Package sets runs the connection sets that controllers define for this host, as "headgate
// collective run" runs those of a file.
//
// The sets run in the agent's process. If they ran in a process of their own, an agent that was
// killed or upgraded would have to find that process again and determine its version and its sets.
// In one process, a changed document affects its own set only, and the running code is always the
// agent's version. The cost is small: when the agent ends, a connection's caps end within a second
// of its next packet, no packet is lost, and the learned proportions are measured again. The
// programs stay attached in the kernel meanwhile, so that the next agent keeps the connections.
//
// If a program of this host runs a set of the same name, that program keeps the set.
package sets
