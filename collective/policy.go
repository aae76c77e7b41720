package collective

// Policy is which connections are one set.
type Policy struct {
	// Name is for people, and unlike any other set's.
	Name string
	// Cgroup is a path below the cgroup v2 mount: the connections that its processes open or
	// accept; "/" is every process of the machine.
	Cgroup string
}
