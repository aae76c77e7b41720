package host

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"time"
)

// The SOCKS protocol version 5: RFC 1928, and RFC 1929 for user names and passwords. Of its commands the listener has
// CONNECT. It is written here because the replies depend on what the exit answers, and what is left is the parser;
// golang.org/x/net has a client alone.
const (
	socksVersion = 5 // RFC 1928, section 3

	noAuthentication byte = 0 // methods: RFC 1928, section 3
	userPassword     byte = 2
	noMethod         byte = 0xff

	passwordVersion = 1 // RFC 1929, section 2

	commandConnect byte = 1 // RFC 1928, section 4

	typeIPv4 byte = 1 // RFC 1928, section 5
	typeName byte = 3
	typeIPv6 byte = 4
)

// Replies (RFC 1928, section 6).
const (
	replySucceeded byte = iota
	replyFailure
	replyNotAllowed
	replyNetworkUnreachable
	replyHostUnreachable
	replyRefused
	_ // TTL expired
	replyCommand
	replyAddressType
)

// lingerTimeout is how long a connection that got an error as reply stays open, so that the reply arrives; 10 s are
// the most that RFC 1928, section 6 allows.
const lingerTimeout = time.Second

// serveSocks serves SOCKS5 until the listener is closed.
func (e *explicit) serveSocks(l net.Listener, users Users) error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		e.apps.Go(func() { e.socks(c, users) })
	}
}

// socks serves one connection.
func (e *explicit) socks(c net.Conn, users Users) {
	defer context.AfterFunc(e.apps.ctx, func() { c.Close() })()
	_ = c.SetDeadline(time.Now().Add(handshakeTimeout))
	host, port, err := readSocks(c, users)
	if err != nil {
		e.log.Info("malformed or refused SOCKS request", "from", c.RemoteAddr(), "error", err)
		linger(c)
		return
	}
	to, err := e.connect(e.apps.ctx, c.RemoteAddr(), host, port)
	_ = c.SetDeadline(time.Now().Add(handshakeTimeout))
	if err != nil {
		e.refusedRequest(c.RemoteAddr(), net.JoinHostPort(host, strconv.Itoa(int(port))), err)
		_, _ = c.Write(socksReply(replyOf(err)))
		linger(c)
		return
	}
	_, _ = c.Write(socksReply(replySucceeded)) // carry sees a broken connection
	_ = c.SetDeadline(time.Time{})
	to.carry(c)
}

// readSocks reads a client's messages up to its request, and answers them. An error has been answered.
func readSocks(c io.ReadWriter, users Users) (host string, port uint16, err error) {
	var head [4]byte
	if _, err := io.ReadFull(c, head[:2]); err != nil {
		return "", 0, err
	}
	if head[0] != socksVersion {
		return "", 0, fmt.Errorf("version %d of SOCKS is not supported: use version 5", head[0])
	}
	methods := make([]byte, head[1])
	if _, err := io.ReadFull(c, methods); err != nil {
		return "", 0, err
	}
	if err := authenticate(c, methods, users); err != nil {
		return "", 0, err
	}
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return "", 0, err
	}
	answer := func(reply byte, format string, args ...any) (string, uint16, error) {
		_, _ = c.Write(socksReply(reply))
		return "", 0, fmt.Errorf(format, args...)
	}
	if head[0] != socksVersion || head[2] != 0 {
		return answer(replyFailure, "malformed request")
	}
	size := 0
	switch head[3] {
	case typeIPv4:
		size = 4
	case typeIPv6:
		size = 16
	case typeName:
		var n [1]byte
		if _, err := io.ReadFull(c, n[:]); err != nil {
			return "", 0, err
		}
		size = int(n[0])
	default:
		return answer(replyAddressType, "address type %d is not supported", head[3])
	}
	address := make([]byte, size+2)
	if _, err := io.ReadFull(c, address); err != nil {
		return "", 0, err
	}
	if head[1] != commandConnect {
		return answer(replyCommand, "command %d is not supported: this proxy has CONNECT only", head[1])
	}
	host, port = string(address[:size]), binary.BigEndian.Uint16(address[size:])
	if head[3] != typeName {
		ip, _ := netip.AddrFromSlice(address[:size])
		host = ip.String()
	}
	if host == "" || port == 0 {
		return answer(replyFailure, "the request has no destination or port")
	}
	return host, port, nil
}

// authenticate chooses a method of those that the client offers, and checks its password if there are users.
func authenticate(c io.ReadWriter, methods []byte, users Users) error {
	method := noAuthentication
	if users != nil {
		method = userPassword
	}
	offered := false
	for _, m := range methods {
		offered = offered || m == method
	}
	if !offered {
		_, _ = c.Write([]byte{socksVersion, noMethod})
		if users != nil {
			return errors.New("the client offers no user name and password, which this proxy requires")
		}
		return errors.New("the client requires an authentication, which this proxy does not have")
	}
	if _, err := c.Write([]byte{socksVersion, method}); err != nil || users == nil {
		return err
	}
	var head [1]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return err
	}
	if head[0] != passwordVersion {
		return errors.New("malformed user name and password")
	}
	var given [2]string
	for n := range given {
		if _, err := io.ReadFull(c, head[:]); err != nil {
			return err
		}
		text := make([]byte, head[0])
		if _, err := io.ReadFull(c, text); err != nil {
			return err
		}
		given[n] = string(text)
	}
	if !users.allow(given[0], given[1]) {
		_, _ = c.Write([]byte{passwordVersion, 1})
		return fmt.Errorf("wrong password for user %q", given[0])
	}
	_, err := c.Write([]byte{passwordVersion, 0})
	return err
}

// socksReply returns a reply without a bound address, which CONNECT has no use for: the exit's, or this agent's.
func socksReply(reply byte) []byte {
	return []byte{socksVersion, reply, 0, typeIPv4, 0, 0, 0, 0, 0, 0}
}

// replyOf returns the reply for an error.
func replyOf(err error) byte {
	switch refusalOf(err).cause {
	case notAllowed:
		return replyNotAllowed
	case refused:
		return replyRefused
	case networkUnreachable:
		return replyNetworkUnreachable
	case hostUnreachable, timedOut:
		return replyHostUnreachable
	}
	return replyFailure
}

// linger closes a connection after its client has read the reply: what the client has sent meanwhile would make the
// kernel send a reset instead of it.
func linger(c net.Conn) {
	closeWrite(c)
	_ = c.SetReadDeadline(time.Now().Add(lingerTimeout))
	_, _ = io.Copy(io.Discard, io.LimitReader(c, 64<<10))
	c.Close()
}
