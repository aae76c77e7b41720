package host

import (
	"errors"
	"net"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// refusal is why a destination was not connected to, in the terms that SOCKS and HTTP have an answer for. An exit
// sends it as the reason of a Reset: the cause, a colon and the text.
type refusal struct {
	cause cause
	text  string
}

func (r refusal) Error() string { return r.text }

type cause string

// The causes. An agent that does not know the cause of another takes it as failed.
const (
	failed             cause = "failed"
	notAllowed         cause = "not allowed"
	refused            cause = "refused"
	hostUnreachable    cause = "host unreachable"
	networkUnreachable cause = "network unreachable"
	timedOut           cause = "timed out"
)

// refusalOf returns the refusal of an error of this agent.
func refusalOf(err error) refusal {
	var r refusal
	if errors.As(err, &r) {
		return r
	}
	r = refusal{failed, err.Error()}
	var timeout net.Error
	var name *net.DNSError
	switch {
	case errors.Is(err, unix.ECONNREFUSED):
		r.cause = refused
	case errors.Is(err, unix.EHOSTUNREACH), errors.As(err, &name):
		r.cause = hostUnreachable
	case errors.Is(err, unix.ENETUNREACH):
		r.cause = networkUnreachable
	case errors.As(err, &timeout) && timeout.Timeout():
		r.cause = timedOut
	}
	return r
}

func (r refusal) reason() string { return string(r.cause) + ": " + r.text }

// parseRefusal returns the refusal that another agent sent as a reason.
func parseRefusal(reason string) refusal {
	word, text, ok := strings.Cut(reason, ": ")
	if c := cause(word); ok && slices.Contains([]cause{failed, notAllowed, refused, hostUnreachable, networkUnreachable, timedOut}, c) {
		return refusal{c, text}
	}
	return refusal{failed, reason}
}
