package ovsdb

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync/atomic"
)

// request is a request, or a notification if ID is nil (RFC 7047, section 3.1; JSON-RPC 1.0, 1.1 and 1.3).
type request struct {
	Method string `json:"method"`
	Params []any  `json:"params"`
	ID     any    `json:"id"`
}

// response answers a request (JSON-RPC 1.0, 1.2).
type response struct {
	Result any             `json:"result"`
	Error  any             `json:"error"`
	ID     json.RawMessage `json:"id"`
}

// message is what a server sends: a request, a notification or a response. A member that is null or missing is nil.
type message struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
	ID     json.RawMessage `json:"id"`
}

func isNull(text json.RawMessage) bool { return len(text) == 0 || string(text) == "null" }

// id returns the id of a response to a request of ours, all of which are numbers.
func (m message) id() (uint64, error) {
	n, err := strconv.ParseUint(string(m.ID), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the server answered a request with the id %.40s, which was not sent", m.ID)
	}
	return n, nil
}

// stream decodes messages, which follow each other without a length or a separator (RFC 7047, section 4.1). A message
// is at most limit bytes, and the decoder's buffer at most twice as large.
type stream struct {
	from     io.Reader
	limit    int64
	left     int64         // bytes of the current message that may still be read
	received atomic.Uint64 // bytes
	decoder  *json.Decoder
}

func newStream(from io.Reader, limit int64) *stream {
	s := &stream{from: from, limit: limit}
	s.decoder = json.NewDecoder(s)
	return s
}

var errTooLarge = errors.New("the message is too large")

// Read reads for the decoder, no more than the message may have.
func (s *stream) Read(p []byte) (int, error) {
	if s.left <= 0 {
		return 0, errTooLarge
	}
	n, err := s.from.Read(p[:min(int64(len(p)), s.left)])
	s.left -= int64(n)
	s.received.Add(uint64(n))
	return n, err
}

// next returns the next message. Its errors are sentences on what the server did.
func (s *stream) next() (message, error) {
	var m message
	s.left = s.limit
	err := s.decoder.Decode(&m)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil && m.Method == "" && isNull(m.ID):
		return m, errors.New("the server sent JSON that is neither a request nor a response")
	case errors.Is(err, io.EOF):
		return m, errors.New("the server closed the connection")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return m, errors.New("the server closed the connection within a message")
	case errors.Is(err, errTooLarge):
		return m, fmt.Errorf("the server sent a message of more than %d bytes", s.limit)
	case errors.As(err, &syntax):
		return m, fmt.Errorf("the server sent invalid JSON: %w", err)
	case errors.As(err, &kind):
		return m, fmt.Errorf("the server sent JSON that is not a message of JSON-RPC: %w", err)
	case err != nil:
		return m, fmt.Errorf("cannot read from the server: %w", err)
	}
	return m, nil
}
