package htb

// WithObjects calls do with other eBPF objects, as in another build of Headgate. It is for tests
// and benchmarks of upgrades; no other function of this package may run concurrently.
func WithObjects(classifierObject, departuresObject []byte, do func() error) error {
	c, d := _ClassifierBytes, _DeparturesBytes
	_ClassifierBytes, _DeparturesBytes = classifierObject, departuresObject
	defer func() { _ClassifierBytes, _DeparturesBytes = c, d }()
	return do()
}

// WithEarlierObject calls do as a build with that classifier and with other queue layouts, and so
// without a departure hook.
func WithEarlierObject(classifierObject []byte, do func() error) error {
	return WithObjects(classifierObject, []byte("no hook"), do)
}
