package service

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// metrics returns a controller's metrics, by name and labels. It reads them on the controller's own
// host, also while that is isolated.
func (c *control) metrics(ctx context.Context) (map[string]float64, error) {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DialContext: dial(c.node), DisableKeepAlives: true}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(c.address, metricsPort)+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	got, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		return nil, err
	}
	all := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		of, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			all[of] = v
		}
	}
	return all, nil
}

// metric returns one metric.
func (c *control) metric(ctx context.Context, name string) (float64, error) {
	all, err := c.metrics(ctx)
	if err != nil {
		return 0, err
	}
	v, ok := all[name]
	if !ok {
		err = fmt.Errorf("controller %s has no metric %s", c.name, name)
	}
	return v, err
}

// answered returns how many requests of each operation a controller has answered with a 2xx.
func (c *control) answered(ctx context.Context) (map[string]float64, error) {
	all, err := c.metrics(ctx)
	sums := map[string]float64{}
	for of, n := range all {
		labels, ok := strings.CutPrefix(of, `headgate_controller_request_duration_seconds_count{operation="`)
		if operation, status, both := strings.Cut(labels, `",status="`); ok && both && status[0] == '2' {
			sums[operation] += n
		}
	}
	return sums, err
}
