package traffic

import (
	"time"

	"headgate.dev/headgate/unit"
)

// Requests are requests that a flow's From sends and its To responds to.
//
// They come either from Users, each of whom sends a request, waits for the response, thinks and
// repeats (a closed loop: a slow path slows the users down), or at a Rate, whatever the outcome of
// earlier ones (an open loop, Poisson arrivals). In an open loop at most Connections are in progress
// at once, and the others wait in a backlog. Latency counts from the time at which a request was due
// until its response is complete, so that it includes the backlog and delays of the program
// ("coordinated omission").
type Requests struct {
	// Request and Response are the sizes, in bytes of payload. Smaller values than MinRequest or 1
	// byte are raised to that.
	Request, Response Distribution[unit.Bytes]
	// Users is the number of users of a closed loop, each with its own connection.
	Users int `json:",omitempty"`
	// Think is how long a user waits, also before the first request.
	Think Distribution[time.Duration]
	// Rate is the mean arrival rate of an open loop, per second.
	Rate float64 `json:",omitempty"`
	// Connections is the maximum number of requests in progress in an open loop; 0 is
	// DefaultConnections.
	Connections int `json:",omitempty"`
	// MaxBacklog limits how many wait for a connection: further ones are refused, and counted. 0 is no
	// limit.
	MaxBacklog int `json:",omitempty"`
	// Reconnect opens a connection for each request, which the answerer closes; its handshake is part
	// of the latency. Otherwise connections are opened before the run and last for all of it.
	Reconnect bool `json:",omitempty"`
}

// Constants of requests, chosen by this project.
const (
	// DefaultConnections is the size of a connection pool of typical clients of databases and web
	// services.
	DefaultConnections = 16
	// MinRequest holds both sizes.
	MinRequest = 16
	// maxConnections stays below the number of ephemeral ports of an address, about 28,000.
	maxConnections = 20_000
	// maxRequestRate is above what one thread can process: about 25,000 a second on a machine with 2
	// cores.
	maxRequestRate = 1e6
	// failurePause is the delay before a retry of a failed connection.
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
		return mistake("", "requests come from users or at a rate: set one of the two")
	case r.Users < 0 || r.Users > maxConnections:
		return mistake("users", "%d users are not between 1 and %d", r.Users, maxConnections)
	case open && !(r.Rate > 0 && r.Rate <= maxRequestRate):
		return mistake("rate", "%g requests a second are not above 0 and at most %g", r.Rate, float64(maxRequestRate))
	case r.Connections < 0 || r.Connections > maxConnections:
		return mistake("connections", "%d connections are not between 1 and %d", r.Connections, maxConnections)
	case r.MaxBacklog < 0:
		return mistake("max_backlog", "%d is negative: leave it out for a backlog without a limit", r.MaxBacklog)
	case !open && r.Connections != 0:
		return mistake("connections", "each user has one connection: leave this out, or set a rate instead of users")
	case !open && r.MaxBacklog != 0:
		return mistake("max_backlog", "users have no backlog: leave this out, or set a rate instead of users")
	case open && r.Think != (Distribution[time.Duration]{}):
		return mistake("think", "the think time is for users, not for a rate: leave it out")
	}
	return nil
}

// RequestCounts are numbers of requests. Arrived = Refused + Started + those in the backlog; Started =
// Done + Failed + those in progress.
type RequestCounts struct {
	Arrived uint64 `json:"arrived"`
	Refused uint64 `json:"refused"` // the backlog was full
	Started uint64 `json:"started"`
	Done    uint64 `json:"done"`
	Failed  uint64 `json:"failed"` // the connection failed
}

// RequestStats are the requests of an interval, or of the whole run.
type RequestStats struct {
	RequestCounts
	// UnderWay and Backlog are at the end, MaxBacklog is the maximum of the backlog.
	UnderWay   uint64 `json:"under_way"`
	Backlog    uint64 `json:"backlog"`
	MaxBacklog uint64 `json:"max_backlog"`
	// Connections is the number of opened connections.
	Connections uint64 `json:"connections"`
	// RequestBytes and ResponseBytes are received payload.
	RequestBytes  uint64 `json:"request_bytes"`
	ResponseBytes uint64 `json:"response_bytes"`
	// Latency is that of the completed requests.
	Latency Times `json:"latency"`
}
