// Package agent is the host's control loop: it keeps what the files say in force
// on devices that come, go, change and are meddled with.
//
// It is level-triggered. An event (netlink, inotify, a signal) only says that it
// is time to look; what is to be done follows from the files and from what there
// is now, so that a lost event costs time and nothing else. The steps, each a
// file: want.go says what each device shall have, decide.go what is to be done
// about what it has, timing.go when, and agent.go does it. Only kernel.go and
// cgroups.go speak to the kernel; the rest is tested in virtual time.
//
// Who owns what. The agent owns the devices that its files name. There its files
// win over other programs: what they take away is given back, at once the first
// time, then ever more slowly. A plan that "headgate apply" put in force by hand
// is no damage: it stays, and is kept in repair, until the files are read again
// (a reload, a restart) or the device comes anew. So does a change that waits
// for its confirmation. A device that the files no longer name is given back,
// unless what is in force there was applied by hand. "headgate clear" takes
// groups away from under the agent, which gives them back: stop it, or take the
// device out of its files.
//
// The agent holds nothing up: when it stops, or is killed, the kernel goes on
// with what is in force.
//
// Programs of the host put connections of their own in groups at a socket (local.go): the agent
// takes the ends from the descriptor that they pass (conn.go), and who may from the files.
//
// A rule that names a cgroup that does not exist is left out until there is one.
//
// What it does not do: change what another program's class or filter option
// changed (it finds that within a minute, by looking), follow network namespaces
// other than its own, or read files on its own accord.
package agent
