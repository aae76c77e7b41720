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

	"headgate.dev/headgate/internal/listen"
)

// Listen opens the listener for Serve, so that the caller gets an error for an address in use before it starts
// anything else. Clients that connect before Serve is called wait.
func Listen(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot serve metrics: %w", listen.Remedy(err, "--metrics"))
	}
	return l, nil
}

// Serve serves the metrics under /metrics until stop is called. stop also closes the listener.
func Serve(l net.Listener, all ...prometheus.Collector) (stop func() error) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(all...)
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	// The timeout protects against clients that send their request slowly.
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			slog.Error("cannot serve metrics", "error", err)
		}
	}()
	return s.Close
}
