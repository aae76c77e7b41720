package metrics

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Serve answers under /metrics at an address until stop.
func Serve(address string, all ...prometheus.Collector) (stop func() error, err error) {
	registry := prometheus.NewPedanticRegistry()
	for _, c := range all {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot serve metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	// Who sends its request slowly is not waited for.
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			slog.Error("metrics are not served any more", "error", err)
		}
	}()
	return s.Close, nil
}
