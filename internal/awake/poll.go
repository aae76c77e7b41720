package awake

import (
	"encoding/binary"
	"errors"
	"os"
	"strings"
)

const (
	// driverFile has the name of the cpuidle driver. latencyFile accepts the maximum wake-up
	// latency of a processor in microseconds, which applies while the file is open
	// (drivers/cpuidle/sysfs.c, kernel/power/qos.c).
	driverFile  = "/sys/devices/system/cpu/cpuidle/current_driver"
	latencyFile = "/dev/cpu_dma_latency"
)

// poll makes idle processors poll for work instead of halting.
func poll() (stop func(), err error) {
	driver, err := os.ReadFile(driverFile)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(string(driver)) == "none" {
		return nil, errors.New("the kernel has no cpuidle driver")
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
