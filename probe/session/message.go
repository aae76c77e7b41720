package session

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// Version is the protocol version.
const Version = 1

// message is one line of the protocol. It has exactly one member.
type message struct {
	Proof   *proof        `json:"proof,omitempty"`
	Open    *open         `json:"open,omitempty"`
	Wait    *wait         `json:"wait,omitempty"`
	Welcome *welcome      `json:"welcome,omitempty"`
	Ready   *ready        `json:"ready,omitempty"`
	Train   *trainRequest `json:"train,omitempty"`
	Sent    *sent         `json:"sent,omitempty"`
	Arrived *arrived      `json:"arrived,omitempty"`
	Bye     *bye          `json:"bye,omitempty"`
	// Measure requests a measurement of the path from the server to a peer.
	Measure  *measure  `json:"measure,omitempty"`
	Progress *progress `json:"progress,omitempty"`
	Measured *measured `json:"measured,omitempty"`
	// Refused ends the session; its text is the reason.
	Refused string `json:"refused,omitempty"`
}

// proof shows that the sender knows the shared key.
type proof struct {
	MAC []byte `json:"mac"`
}

type open struct {
	Version int `json:"version"`
}

// wait reports that another client measures, and how many clients are ahead in the queue.
type wait struct {
	Before int `json:"before"`
}

type welcome struct {
	Version int  `json:"version"`
	Session Hex  `json:"session"`
	Caps    Caps `json:"caps"`
	// Data is the UDP port of the server.
	Data int `json:"data"`
}

type ready struct {
	// MTU is that of the server's device towards the client.
	MTU int `json:"mtu"`
	// ObservedAddress is the client's address as the server sees it.
	ObservedAddress string `json:"seen"`
}

// trainRequest announces a train to the server, or requests a train to the client.
type trainRequest struct {
	Number   uint32      `json:"number"`
	ToClient bool        `json:"to_client,omitempty"`
	Train    probe.Train `json:"train"`
}

// sent reports that a train has been sent. The server adds the time of each packet.
type sent struct {
	Number uint32        `json:"number"`
	At     probe.Deltas  `json:"at,omitempty"`
	Late   time.Duration `json:"late,omitempty"`
	Stolen int64         `json:"stolen,omitempty"`
}

// arrived reports the arrivals of a train.
type arrived struct {
	Number   uint32       `json:"number"`
	Packet   probe.Deltas `json:"packet"`
	At       probe.Deltas `json:"at"`
	Overflow int          `json:"overflow,omitempty"`
	Stolen   int64        `json:"stolen,omitempty"`
	Stepped  bool         `json:"stepped,omitempty"`
}

type bye struct{}

// measure requests a measurement of the path to a peer. This package does not interpret
// the request or the result.
type measure struct {
	Version int             `json:"version"`
	Peer    string          `json:"peer"`
	Request json.RawMessage `json:"request,omitempty"`
}

// progress shows that the measurement goes on, with an optional text.
type progress struct {
	Text string `json:"text,omitempty"`
}

// measured is the end of a measurement for a client: a result, an error, or both if part
// of the path was measured before the error.
type measured struct {
	Result json.RawMessage `json:"result,omitempty"`
	Failed string          `json:"failed,omitempty"`
}

// Caps bound what a server does for one session.
type Caps struct {
	// Bytes of layer 2 that the server sends in total.
	Bytes unit.Bytes `json:"bytes"`
	// Rate is the average layer 2 rate within any second. A train shorter than that may
	// be sent faster.
	Rate unit.Rate `json:"rate"`
	// Time from the welcome to the end of the session.
	Time time.Duration `json:"time"`
}

// Default has the default caps of a server.
var Default = Caps{Bytes: 200_000_000, Rate: unit.Gbit, Time: 2 * time.Minute}

// lines reads and writes the lines of a connection.
type lines struct {
	in  *bufio.Reader
	out io.Writer
	// longest is the maximum length of a line that is read.
	longest int
}

// Maximum line lengths. The longest line from a client is a train of many parts. The
// longest line from a server is the arrivals of a train, or the result of a measurement.
const (
	longestOrder  = 512 << 10
	longestAnswer = 64 << 20
	longestResult = 4 << 20
)

// errTooLong is the error for a line that no correct peer sends.
var errTooLong = errors.New("protocol line is too long")

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
		return m, fmt.Errorf("cannot parse protocol line: %w", err)
	}
	return m, nil
}
