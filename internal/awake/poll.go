package awake

import (
	"encoding/binary"
	"errors"
	"os"
	"strings"
)

const (
	// driverFile names what puts processors to sleep, latencyFile takes the microseconds that one
	// may take to wake up, as long as it is open (drivers/cpuidle/sysfs.c, kernel/power/qos.c).
	driverFile  = "/sys/devices/system/cpu/cpuidle/current_driver"
	latencyFile = "/dev/cpu_dma_latency"
)

// poll has idle processors wait for work without halting.
func poll() (stop func(), err error) {
	driver, err := os.ReadFile(driverFile)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(string(driver)) == "none" {
		return nil, errors.New("the kernel has no driver of idle states: its processors halt")
	}
	f, err := os.OpenFile(latencyFile, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	if err := binary.Write(f, binary.NativeEndian, int32(0)); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}
