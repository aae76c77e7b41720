package mesh

import (
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/path"
)

// Row is the result of one direction of a pair of servers.
type Row struct {
	From string        `json:"from"`
	To   string        `json:"to"`
	RTT  time.Duration `json:"rtt_ns,omitempty"`
	// Answer can be set together with Failed, if part of the measurement succeeded.
	Answer *path.Answer `json:"answer,omitempty"`
	Failed string       `json:"failed,omitempty"`
}

// Capacity returns the estimate of the path's capacity, or nil if it was not measured.
func (r *Row) Capacity() *probe.Estimate {
	if r.Answer == nil {
		return nil
	}
	return r.Answer.Capacity
}

// TokenRate returns the estimate of the token rate, or nil if it was not measured.
func (r *Row) TokenRate() *probe.Estimate {
	if r.Answer == nil || r.Answer.TokenRate == nil {
		return nil
	}
	return &r.Answer.TokenRate.Rate
}

// Bucket returns the estimate of the bucket size, or nil if it was not measured.
func (r *Row) Bucket() *probe.Estimate {
	if r.Answer == nil || r.Answer.TokenRate == nil {
		return nil
	}
	return &r.Answer.TokenRate.Bucket
}

// Available returns the estimate of the available bandwidth, or nil if it was not measured.
func (r *Row) Available() *probe.Estimate {
	if r.Answer == nil || r.Answer.Available == nil {
		return nil
	}
	return &r.Answer.Available.Available
}

// Rows are the results of a mesh, in the order in which they were measured.
type Rows []Row

// Failed returns the number of directions that were not measured completely.
func (m Rows) Failed() (n int) {
	for _, r := range m {
		if r.Failed != "" {
			n++
		}
	}
	return n
}
