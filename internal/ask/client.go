package ask

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrNobody means that no program answers at a socket.
var ErrNobody = errors.New("no such program runs")

// Failure is what an answer says that is an error. Answers embed it.
type Failure struct {
	// Error is a sentence, "" if it was done.
	Error string `json:"error,omitempty"`
	// Denied: it is for another user.
	Denied bool `json:"denied,omitempty"`
}

// FailureOf is an error as an answer says it; nil is none.
func FailureOf(err error) Failure {
	if err == nil {
		return Failure{}
	}
	return Failure{err.Error(), errors.Is(err, os.ErrPermission)}
}

// Err is the error again: an os.ErrPermission if it was denied.
func (f Failure) Err() error {
	switch {
	case f.Denied:
		return Denied(f.Error)
	case f.Error != "":
		return errors.New(f.Error)
	}
	return nil
}

// Denied is an answer to a user who may not: an os.ErrPermission.
type Denied string

func (d Denied) Error() string        { return string(d) }
func (d Denied) Is(target error) bool { return target == os.ErrPermission }

// Call asks the program at a socket, with a descriptor or none beside the request, and reads its
// answer. The descriptor stays the caller's.
func Call(path string, request, answer any, fds ...int) error {
	c, err := net.DialTimeout("unix", path, Patience)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) {
		return ErrNobody
	}
	if err != nil {
		return err
	}
	defer c.Close()
	// It may take as long to find time for it.
	c.SetDeadline(time.Now().Add(2 * Patience))
	text, err := json.Marshal(request)
	if err != nil {
		return err
	}
	var beside []byte
	if len(fds) > 0 {
		beside = unix.UnixRights(fds...)
	}
	if _, _, err := c.(*net.UnixConn).WriteMsgUnix(text, beside, nil); err != nil {
		return err
	}
	if err := json.NewDecoder(c).Decode(answer); err != nil {
		return fmt.Errorf("cannot understand what it says: %w", err)
	}
	return nil
}
