package host

// idleMemory is after how many measurements without a connection an agent gives back its memory to the kernel. The
// reassembly buffers of one connection may have had 256 MB, and the runtime gives them back over minutes.
const idleMemory = 5

// memoryReturn decides when to give back memory: some time after the last connection, and again when the streams that no connection
// needs have been closed, each of which has half a megabyte of buffers.
type memoryReturn struct {
	used    bool // since memory was given back
	idle    int  // measurements without a connection
	streams int  // at the last measurement
}

// observe takes the number of connections and of streams, and reports whether to give back memory now.
func (m *memoryReturn) observe(conns, streams int) bool {
	fewer := streams < m.streams
	m.streams = streams
	if conns > 0 {
		m.used, m.idle = true, 0
		return false
	}
	m.idle++
	if fewer { // others may follow at once
		m.used = true
		return false
	}
	if !m.used || m.idle < idleMemory {
		return false
	}
	m.used = false
	return true
}
