package session

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"headgate/probe"
	"headgate/unit"
)

// Version of the protocol.
const Version = 1

// message is a line of the protocol: one of its members.
type message struct {
	Proof   *proof   `json:"proof,omitempty"`
	Open    *open    `json:"open,omitempty"`
	Wait    *wait    `json:"wait,omitempty"`
	Welcome *welcome `json:"welcome,omitempty"`
	Ready   *ready   `json:"ready,omitempty"`
	Train   *order   `json:"train,omitempty"`
	Sent    *sent    `json:"sent,omitempty"`
	Arrived *arrived `json:"arrived,omitempty"`
	Bye     *bye     `json:"bye,omitempty"`
	// Measure asks a server to measure the path to another one.
	Measure  *measure  `json:"measure,omitempty"`
	Progress *progress `json:"progress,omitempty"`
	Measured *measured `json:"measured,omitempty"`
	// Refused ends the session, and says why.
	Refused string `json:"refused,omitempty"`
}

// proof shows that an end knows the shared key.
type proof struct {
	MAC []byte `json:"mac"`
}

type open struct {
	Version int `json:"version"`
}

// wait says that others measure, and how many come before.
type wait struct {
	Before int `json:"before"`
}

type welcome struct {
	Version int  `json:"version"`
	Session Hex  `json:"session"`
	Caps    Caps `json:"caps"`
	// Data is the UDP port.
	Data int `json:"data"`
}

type ready struct {
	// MTU is that of the server's device towards the client.
	MTU int `json:"mtu"`
	// Seen is the client's address as the server sees it.
	Seen string `json:"seen"`
}

// order announces a train to the server, or asks for one to the client.
type order struct {
	Number   uint32      `json:"number"`
	ToClient bool        `json:"to_client,omitempty"`
	Train    probe.Train `json:"train"`
}

// sent says that a train has left, and of the server's when each packet did.
type sent struct {
	Number uint32        `json:"number"`
	At     probe.Deltas  `json:"at,omitempty"`
	Late   time.Duration `json:"late,omitempty"`
	Stolen int64         `json:"stolen,omitempty"`
}

// arrived says what came of a train.
type arrived struct {
	Number   uint32       `json:"number"`
	Packet   probe.Deltas `json:"packet"`
	At       probe.Deltas `json:"at"`
	Overflow int          `json:"overflow,omitempty"`
	Stolen   int64        `json:"stolen,omitempty"`
	Stepped  bool         `json:"stepped,omitempty"`
}

type bye struct{}

// measure asks for the path to a peer. What is asked of it, and what comes of it, is
// not known here.
type measure struct {
	Version int             `json:"version"`
	Peer    string          `json:"peer"`
	Request json.RawMessage `json:"request,omitempty"`
}

// progress says that the other end is at it, and perhaps at what.
type progress struct {
	Text string `json:"text,omitempty"`
}

// measured is the end of a measurement for a client: a result, why there is none, or
// both if it came to no good end.
type measured struct {
	Result json.RawMessage `json:"result,omitempty"`
	Failed string          `json:"failed,omitempty"`
}

// Caps bound what a server does for one session.
type Caps struct {
	// Bytes of layer 2 that it sends in all.
	Bytes unit.Bytes `json:"bytes"`
	// Rate of layer 2 at which it sends over any second; a train may leave faster, if
	// it is shorter.
	Rate unit.Rate `json:"rate"`
	// Time from the welcome to the end.
	Time time.Duration `json:"time"`
}

// Default caps of a server.
var Default = Caps{Bytes: 200_000_000, Rate: unit.Gbit, Time: 2 * time.Minute}

// lines is a connection on which lines are exchanged.
type lines struct {
	in  *bufio.Reader
	out io.Writer
	// longest line that is read.
	longest int
}

// The longest line from a client is a train of many parts, and from a server a train's
// arrivals, or what it has measured itself.
const (
	longestOrder  = 512 << 10
	longestAnswer = 64 << 20
	longestResult = 4 << 20
)

// errTooLong tells of a line that no honest end sends.
var errTooLong = errors.New("the line is too long")

func (l *lines) write(m message) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = l.out.Write(append(b, '\n'))
	return err
}

func (l *lines) read() (m message, err error) {
	var line []byte
	for {
		part, err := l.in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > l.longest {
			return m, errTooLong
		}
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return m, err
		}
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return m, fmt.Errorf("a line that is no message: %w", err)
	}
	return m, nil
}
