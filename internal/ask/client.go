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

// ErrNotListening means that no program is listening on a socket.
var ErrNotListening = errors.New("no program is listening")

// ErrorResponse is the error in a response. Response types embed it.
type ErrorResponse struct {
	// Error is the error text, "" if the request succeeded.
	Error string `json:"error,omitempty"`
	// Denied means that the user has no permission.
	Denied bool `json:"denied,omitempty"`
}

// NewErrorResponse converts an error for a response; nil means success.
func NewErrorResponse(err error) ErrorResponse {
	if err == nil {
		return ErrorResponse{}
	}
	return ErrorResponse{err.Error(), errors.Is(err, os.ErrPermission)}
}

// Err converts the failure back to an error. It is an os.ErrPermission if Denied is set.
func (f ErrorResponse) Err() error {
	switch {
	case f.Denied:
		return Denied(f.Error)
	case f.Error != "":
		return errors.New(f.Error)
	}
	return nil
}

// Denied is the error for a user without permission. It is an os.ErrPermission.
type Denied string

func (d Denied) Error() string        { return string(d) }
func (d Denied) Is(target error) bool { return target == os.ErrPermission }

// Call sends a request to the program at a socket, optionally with descriptors, and reads the
// response. The caller keeps the descriptors.
func Call(path string, request, answer any, fds ...int) error {
	c, err := net.DialTimeout("unix", path, Timeout)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) {
		return ErrNotListening
	}
	if err != nil {
		return err
	}
	defer c.Close()
	// The server may need Patience to accept the request, and again to answer it.
	c.SetDeadline(time.Now().Add(2 * Timeout))
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
		return fmt.Errorf("cannot parse the response: %w", err)
	}
	return nil
}
