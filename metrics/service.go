package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Service is the state of a controller.
type Service struct {
	// Hosts is the number of hosts of the service, Agents that of the agents connected to this controller.
	Hosts, Agents int
	// Reports is the number of reports received from agents since the start.
	Reports uint64
	// Leader reports whether the controller is the leader.
	Leader bool
	// Writable reports whether the controller accepts changes.
	Writable bool
	// Revision is the newest revision of the store that this controller has received.
	Revision int64
}

// Controller returns the collectors of a controller's state, its process and the Go runtime.
func Controller(read func() Service) []prometheus.Collector {
	return []prometheus.Collector{service{read}, collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewGoCollector()}
}

type service struct{ read func() Service }

var (
	serviceHosts    = prometheus.NewDesc("headgate_controller_hosts", "Number of hosts of the service.", nil, nil)
	serviceAgents   = prometheus.NewDesc("headgate_controller_agents", "Number of agents connected to this controller.", nil, nil)
	serviceReports  = prometheus.NewDesc("headgate_controller_reports_total", "Reports received from agents.", nil, nil)
	serviceLeader   = prometheus.NewDesc("headgate_controller_leader", "1 if this controller is the leader.", nil, nil)
	serviceWritable = prometheus.NewDesc("headgate_controller_writable", "1 if this controller accepts changes: neither its disk nor the store is nearly full.", nil, nil)
	serviceRevision = prometheus.NewDesc("headgate_controller_revision", "Newest revision of the store that this controller has received.", nil, nil)
)

// Describe implements prometheus.Collector.
func (s service) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{serviceHosts, serviceAgents, serviceReports, serviceLeader, serviceWritable, serviceRevision} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (s service) Collect(to chan<- prometheus.Metric) {
	now := s.read()
	gauge(to, serviceHosts, float64(now.Hosts))
	gauge(to, serviceAgents, float64(now.Agents))
	counter(to, serviceReports, now.Reports)
	gauge(to, serviceLeader, boolValue(now.Leader))
	gauge(to, serviceWritable, boolValue(now.Writable))
	gauge(to, serviceRevision, float64(now.Revision))
}

// Requests is a histogram of the duration of API requests, by operation and status.
type Requests struct{ *prometheus.HistogramVec }

// NewRequests returns a histogram with buckets from 1 ms to 8 s.
func NewRequests() Requests {
	return Requests{prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "headgate_controller_request_duration_seconds", Help: "Duration of requests to the API.",
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
	}, []string{"operation", "status"})}
}

// Observe records a request. operation is the operation id of the specification.
func (r Requests) Observe(operation string, status int, took time.Duration) {
	r.WithLabelValues(operation, strconv.Itoa(status)).Observe(took.Seconds())
}
