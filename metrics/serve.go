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

// Listen takes the address for Serve: whoever does so first knows that it is free before there
// is anything to tell. Who asks in between is kept waiting.
func Listen(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot serve metrics: %w", err)
	}
	return l, nil
}

// Serve answers under /metrics until stop, which closes the listener, too.
func Serve(l net.Listener, all ...prometheus.Collector) (stop func() error) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(all...)
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	// Who sends its request slowly is not waited for.
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			slog.Error("metrics are not served any more", "error", err)
		}
	}()
	return s.Close
}
