package traffic

import (
	"time"

	"headgate.dev/headgate/unit"
)

// Requests are questions that a flow's From asks and its To answers.
//
// They come either from Users, each of whom asks, waits for the answer, thinks and
// asks again (a closed loop: a slow path slows the users down), or at a Rate,
// whatever became of the earlier ones (an open loop, Poisson arrivals). In an open
// loop at most Connections are under way at once, and the others wait in a
// backlog. Latency counts from the moment at which a request was meant to be
// asked until its answer is complete, so that neither the backlog nor a late
// program is left out ("coordinated omission").
type Requests struct {
	// Request and Response are the sizes, in bytes of payload. What is drawn below
	// MinRequest or 1 byte is that.
	Request, Response Distribution[unit.Bytes]
	// Users ask in a closed loop, each on a connection of its own.
	Users int `json:",omitempty"`
	// Think is how long a user waits, before the first question as well.
	Think Distribution[time.Duration]
	// Rate is the mean of an open loop's arrivals, per second.
	Rate float64 `json:",omitempty"`
	// Connections is how many requests an open loop has under way at most; 0 is
	// DefaultConnections.
	Connections int `json:",omitempty"`
	// MaxBacklog bounds how many wait for a connection: one more is refused, and
	// counted. 0 is no bound.
	MaxBacklog int `json:",omitempty"`
	// Reconnect makes a connection for each request, which the answerer closes; its
	// handshake is part of the latency. Otherwise connections are opened before the
	// run and last for all of it.
	Reconnect bool `json:",omitempty"`
}

// Constants of requests, ours.
const (
	// DefaultConnections is a connection pool as clients of databases and web
	// services have it.
	DefaultConnections = 16
	// MinRequest holds both sizes.
	MinRequest = 16
	// maxConnections leaves ports: one address has some 28,000 to give.
	maxConnections = 20_000
	// maxRequestRate is beyond what one thread asks and answers: about 25,000 a
	// second on this machine's 2 cores.
	maxRequestRate = 1e6
	// failurePause keeps a connection that is refused at once from being tried
	// again at once.
	failurePause = 100 * time.Millisecond
)

// Validate checks the numbers.
func (r Requests) Validate() error {
	for _, d := range []struct {
		key string
		err error
	}{{"request", r.Request.Validate()}, {"response", r.Response.Validate()}, {"think", r.Think.Validate()}} {
		if d.err != nil {
			return within(d.key, d.err)
		}
	}
	open := r.Rate != 0
	switch {
	case open == (r.Users != 0):
		return mistake("", "requests come from users or at a rate: give one of the two")
	case r.Users < 0 || r.Users > maxConnections:
		return mistake("users", "%d users are not between 1 and %d", r.Users, maxConnections)
	case open && !(r.Rate > 0 && r.Rate <= maxRequestRate):
		return mistake("rate", "%g requests a second are not above 0 and at most %g", r.Rate, float64(maxRequestRate))
	case r.Connections < 0 || r.Connections > maxConnections:
		return mistake("connections", "%d connections are not between 1 and %d", r.Connections, maxConnections)
	case r.MaxBacklog < 0:
		return mistake("max_backlog", "%d is negative: leave it out for a backlog without a bound", r.MaxBacklog)
	case !open && r.Connections != 0:
		return mistake("connections", "users have a connection each: leave this out, or give a rate instead of users")
	case !open && r.MaxBacklog != 0:
		return mistake("max_backlog", "users have no backlog: leave this out, or give a rate instead of users")
	case open && r.Think != (Distribution[time.Duration]{}):
		return mistake("think", "the time to think is for users, not for a rate: leave it out")
	}
	return nil
}

// RequestCounts are numbers of requests. Arrived = Refused + Started + those that
// wait; Started = Done + Failed + those under way.
type RequestCounts struct {
	Arrived uint64 `json:"arrived"`
	Refused uint64 `json:"refused"` // the backlog was full
	Started uint64 `json:"started"`
	Done    uint64 `json:"done"`
	Failed  uint64 `json:"failed"` // the connection broke, or was not made
}

// RequestStats are the requests of an interval, or of the whole run.
type RequestStats struct {
	RequestCounts
	// UnderWay and Backlog are at the end, MaxBacklog is the most that waited.
	UnderWay   uint64 `json:"under_way"`
	Backlog    uint64 `json:"backlog"`
	MaxBacklog uint64 `json:"max_backlog"`
	// Connections are those that were made.
	Connections uint64 `json:"connections"`
	// RequestBytes and ResponseBytes are payload that arrived.
	RequestBytes  uint64 `json:"request_bytes"`
	ResponseBytes uint64 `json:"response_bytes"`
	// Latency is of the requests that were done.
	Latency Times `json:"latency"`
}
