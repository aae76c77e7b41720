package htb

// AsBuild does something as a build with other eBPF programs would: of an upgrade both ends are
// then there. It is for tests and benches; nothing else of this package may run meanwhile.
func AsBuild(classifierObject, departuresObject []byte, do func() error) error {
	c, d := _ClassifierBytes, _DeparturesBytes
	_ClassifierBytes, _DeparturesBytes = classifierObject, departuresObject
	defer func() { _ClassifierBytes, _DeparturesBytes = c, d }()
	return do()
}

// AsEarlier does something as a build of that classifier, whose queues are not today's, so that it
// has no departure hook.
func AsEarlier(classifierObject []byte, do func() error) error {
	return AsBuild(classifierObject, []byte("no hook"), do)
}
