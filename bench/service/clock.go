package service

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/internal/thread"
)

// clock is the time of day of a process and its children: that of the machine, plus an offset. There
// are no namespaces for the time of day (time_namespaces(7)). So the process's
// clock_gettime(CLOCK_REALTIME) is passed to us by seccomp (seccomp_unotify(2)); a copy of the program
// that does not find the vDSO's clock makes that system call. CLOCK_MONOTONIC does not change, as when
// a clock is set.
type clock struct{ ahead atomic.Int64 } // ns

func (c *clock) set(ahead time.Duration) { c.ahead.Store(int64(ahead)) }

// vdsoNames are the names by which Go's runtime finds the vDSO's clock (runtime/vdso_linux_*.go).
var vdsoNames = []string{"__vdso_clock_gettime", "__kernel_clock_gettime"}

// asksTheKernel writes a copy of this program that reads the time by system calls.
func asksTheKernel(file string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	found := 0
	for _, name := range vdsoNames {
		found += bytes.Count(text, []byte(name))
		other := []byte(name)
		other[len(other)-1] = 'X'
		text = bytes.ReplaceAll(text, []byte(name), other)
	}
	if found == 0 {
		return errors.New("this program does not look for a clock in the vDSO")
	}
	return os.WriteFile(file, text, 0o700)
}

// keeping calls start so that the process that it starts has this clock.
func (c *clock) keeping(start func() error) error {
	// A filter applies to a thread, and cannot be removed.
	return thread.RunOnce(func() error {
		listener, err := filterThread()
		if err != nil {
			return err
		}
		go c.answer(listener)
		return start()
	})
}

// filterThread makes the time of day of this thread and its children come from the returned
// descriptor.
func filterThread() (listener int, err error) {
	const number, argument = 0, 16 // in struct seccomp_data
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: number},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_CLOCK_GETTIME, Jf: 3},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: argument},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.CLOCK_REALTIME, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&filter)))
	if errno != 0 {
		return -1, fmt.Errorf("cannot give a process a clock of its own: seccomp: %w", errno)
	}
	return int(fd), nil
}

// question and reply are struct seccomp_notif and struct seccomp_notif_resp.
type question struct {
	id         uint64
	pid, flags uint32
	number     int32
	arch       uint32
	ip         uint64
	arguments  [6]uint64
}

type reply struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// answer returns the time to the processes until all of them have exited.
func (c *clock) answer(listener int) {
	defer unix.Close(listener)
	for {
		ready := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(ready, -1); err != nil && !errors.Is(err, unix.EINTR) || ready[0].Revents&unix.POLLHUP != 0 {
			return
		}
		if ready[0].Revents&unix.POLLIN == 0 {
			continue
		}
		var q question
		if !ask(listener, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&q)) {
			continue // the process has exited
		}
		r := reply{id: q.id}
		now := unix.NsecToTimespec(time.Now().UnixNano() + c.ahead.Load())
		text := unsafe.Slice((*byte)(unsafe.Pointer(&now)), unsafe.Sizeof(now))
		local, remote := []unix.Iovec{{Base: &text[0]}}, []unix.RemoteIovec{{Base: uintptr(q.arguments[1]), Len: len(text)}}
		local[0].SetLen(len(text))
		if _, err := unix.ProcessVMWritev(int(q.pid), local, remote, 0); err != nil {
			r.errno = -int32(unix.EFAULT)
		}
		ask(listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r))
	}
}

func ask(fd int, request uintptr, argument unsafe.Pointer) bool {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(argument))
	return errno == 0
}

// says checks that a controller's responses have dates with this offset.
func (c *control) says(ahead time.Duration) error {
	client := http.Client{Timeout: 5 * time.Second, Transport: c.place.pinned(c.address)}
	defer client.CloseIdleConnections()
	got, err := client.Get("https://" + net.JoinHostPort(c.address, apiPort) + "/v1/health")
	if err != nil {
		return err
	}
	got.Body.Close()
	at, err := http.ParseTime(got.Header.Get("Date"))
	if err != nil {
		return err
	}
	if off := time.Until(at) - ahead; off.Abs() > 10*time.Second {
		return fmt.Errorf("the clock of %s is off by %v", c.name, off)
	}
	return nil
}
