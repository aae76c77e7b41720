package lab

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Kinds of errors, for callers that choose an exit code. An error of this package matches one of them
// by errors.Is, or neither.
var (
	// ErrConfig is an error in a topology or in the use of this package.
	ErrConfig = errors.New("configuration")
	// ErrPermission is a missing privilege.
	ErrPermission = errors.New("not permitted")
)

// kindError adds a kind to an error without changing its text.
type kindError struct{ kind, err error }

func (e kindError) Error() string   { return e.err.Error() }
func (e kindError) Unwrap() []error { return []error{e.kind, e.err} }

func configErrorf(format string, a ...any) error {
	return kindError{ErrConfig, fmt.Errorf(format, a...)}
}

// permitted turns EPERM and EACCES into ErrPermission and adds the required privileges.
func permitted(err error) error {
	if err != nil && (errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES)) {
		return kindError{ErrPermission, fmt.Errorf("%w; a lab needs root (CAP_NET_ADMIN and CAP_SYS_ADMIN)", err)}
	}
	return err
}
