package host

// idleMemory is after how many measurements without a connection an agent gives back its memory to the kernel. The
// reassembly buffers of one connection may have had 256 MB, and the runtime gives them back over minutes.
const idleMemory = 5

// memoryReturn decides when to give back memory.
type memoryReturn struct {
	used bool // since memory was given back
	idle int  // measurements without a connection
}

// observe takes the number of connections, and reports whether to give back memory now.
func (m *memoryReturn) observe(conns int) bool {
	if conns > 0 {
		m.used, m.idle = true, 0
		return false
	}
	m.idle++
	if !m.used || m.idle < idleMemory {
		return false
	}
	m.used = false
	return true
}
