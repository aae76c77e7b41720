package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Service is what a controller is doing.
type Service struct {
	// Hosts are those that there are, Agents those that are connected to this controller.
	Hosts, Agents int
	// Reports came from agents since it began.
	Reports uint64
	Leader  bool
	// Writable: it takes changes.
	Writable bool
	// Revision is the store's, as far as this controller has it.
	Revision int64
}

// Controller is what a controller is doing, and what its process takes.
func Controller(read func() Service) []prometheus.Collector {
	return []prometheus.Collector{service{read}, collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewGoCollector()}
}

type service struct{ read func() Service }

var (
	serviceHosts    = prometheus.NewDesc("headgate_controller_hosts", "Hosts of the service.", nil, nil)
	serviceAgents   = prometheus.NewDesc("headgate_controller_agents", "Agents that are connected to this controller.", nil, nil)
	serviceReports  = prometheus.NewDesc("headgate_controller_reports_total", "Reports of agents that were taken in.", nil, nil)
	serviceLeader   = prometheus.NewDesc("headgate_controller_leader", "Whether it is the leader.", nil, nil)
	serviceWritable = prometheus.NewDesc("headgate_controller_writable", "Whether it takes changes: its disk and its store have room.", nil, nil)
	serviceRevision = prometheus.NewDesc("headgate_controller_revision", "The store's revision, as far as it has come here.", nil, nil)
)

// Describe is part of prometheus.Collector.
func (s service) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{serviceHosts, serviceAgents, serviceReports, serviceLeader, serviceWritable, serviceRevision} {
		to <- d
	}
}

// Collect is part of prometheus.Collector.
func (s service) Collect(to chan<- prometheus.Metric) {
	now := s.read()
	gauge(to, serviceHosts, float64(now.Hosts))
	gauge(to, serviceAgents, float64(now.Agents))
	counter(to, serviceReports, now.Reports)
	gauge(to, serviceLeader, one(now.Leader))
	gauge(to, serviceWritable, one(now.Writable))
	gauge(to, serviceRevision, float64(now.Revision))
}

// Requests times what is asked of the API, by operation and status.
type Requests struct{ *prometheus.HistogramVec }

// NewRequests has buckets of 1 ms to 8 s.
func NewRequests() Requests {
	return Requests{prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "headgate_controller_request_seconds", Help: "What requests to the API took.",
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
	}, []string{"operation", "status"})}
}

// Done takes one in. Operations are those of the specification.
func (r Requests) Done(operation string, status int, took time.Duration) {
	r.WithLabelValues(operation, strconv.Itoa(status)).Observe(took.Seconds())
}
