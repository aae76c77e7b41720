// Package agent is the host's control loop: it keeps the configuration in force on devices that
// appear, disappear, change, and are modified by other programs.
//
// The loop is level-triggered. An event (netlink, inotify, a signal) only starts a check. The
// necessary changes follow from the desired state and the actual state, so a lost event causes a
// delay and no other harm. Each step has a file: desired.go computes the desired state of each
// device, decide.go chooses the action for a device, timing.go schedules the checks, and agent.go
// runs them. Only kernel.go and cgroups.go access the kernel; the other files are tested in virtual
// time.
//
// # Ownership
//
// The agent owns the devices that its configuration names. On these devices the configuration takes
// precedence over other programs: the agent restores what they remove, at once the first time, then
// with increasing delays. A plan that "headgate apply" applied by hand is not drift: it stays, and
// is kept in repair, until the files are reloaded (a reload, a restart) or the device is recreated.
// The same is true of a change that awaits confirmation. A device that the configuration no longer
// names is cleared, unless its plan was applied by hand. "headgate clear" removes the groups of an
// owned device, and the agent restores them: stop the agent, or remove the device from its files.
//
// When the agent stops, or is killed, the kernel continues to shape traffic with the last applied
// plans.
//
// # Reservations
//
// The controllers' reservations become groups of their interfaces (package reserved, reservations.go), also of an interface
// that no configuration names, whose line's capacity the controllers send. Limits change with a message of their own, which
// changes the groups' classes and compares nothing. Without a controller the last limits stay: the kernel has them, and the
// state file has them for a device that is created again.
//
// # Programs of the host
//
// Programs of the host assign their own connections to groups through a Unix socket (local.go). The
// agent reads the addresses of a connection from the descriptor that the program passes (conn.go),
// and the permissions from the configuration.
//
// A rule that names a cgroup that does not exist is inactive until the cgroup exists.
//
// # Limitations
//
// The agent does not react to an event when another program changes the options of a class or
// filter (the periodic check finds the change within a minute), does not follow network namespaces
// other than its own, and does not reload its files by itself.
package agent
