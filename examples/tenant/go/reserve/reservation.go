package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/unit"
)

// connect returns the client of the service for the owner of a token.
func connect(url, ca, tokenFile string) (*api.Client, error) {
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		return nil, err
	}
	authority, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	trust := x509.NewCertPool()
	if !trust.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("there is no certificate in %s", ca)
	}
	h := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trust}}}
	return api.NewClient(url, api.WithHTTPClient(h), api.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		return nil
	}))
}

// Reservation is bandwidth from one host to another, for TCP to one port.
type Reservation struct {
	Client         *api.Client
	Name, From, To string
	Length         time.Duration // of the reservation, and of each extension

	granted api.Reservation
}

// Rate returns what was granted.
func (r *Reservation) Rate() unit.Rate { return unit.Rate(r.granted.RateBps) }

// End returns when the reservation ends.
func (r *Reservation) End() time.Time { return r.granted.End }

// Reserve reserves a rate, or the most that is granted now if that is at least the lowest rate.
func (r *Reservation) Reserve(ctx context.Context, port string, want, least unit.Rate) error {
	tcp, length, rate := "tcp", r.Length.String(), want.String()
	request := api.NewReservation{
		Name: r.Name, From: api.ReservationEnd{Host: &r.From}, To: api.ReservationEnd{Host: &r.To}, Rate: &rate, Duration: &length,
		Flows: &[]api.ReservationFlow{{Protocol: &tcp, DestinationPorts: &port}},
	}
	for range 5 { // another program may take what is offered
		granted, err := repeat(ctx, func(key string) (*http.Response, error) {
			return r.Client.CreateReservation(ctx, &api.CreateReservationParams{IdempotencyKey: &key}, request)
		})
		var refused *api.RefusedError
		switch {
		case err == nil:
			r.granted = granted
			log.Printf("reserved %v until %s", r.Rate(), r.End().Format(time.RFC3339))
			return nil
		case !errors.As(err, &refused) || refused.Refusal.Most == nil || refused.Refusal.Most.Rate == nil:
			return err
		}
		offer, parseErr := unit.ParseRate(*refused.Refusal.Most.Rate)
		if parseErr != nil {
			return parseErr
		}
		if offer < least {
			return fmt.Errorf("%w: %v is offered, less than %v", err, offer, least)
		}
		log.Printf("refused: %v; taking %v", err, offer)
		request.Rate = refused.Refusal.Most.Rate
	}
	return errors.New("others reserve again and again what is offered")
}

// Extend makes the reservation longer by its length.
func (r *Reservation) Extend(ctx context.Context) error {
	for range 5 {
		now, tag, err := api.DecodeWithETag[api.Reservation](r.Client.GetReservation(ctx, r.granted.Owner, r.Name))
		if err != nil {
			return err
		}
		if tag == nil {
			return fmt.Errorf("reservation %s no longer exists", r.Name)
		}
		longer := (now.End.Sub(now.Start) + r.Length).String()
		now.Request.Duration = &longer
		changed, err := repeat(ctx, func(key string) (*http.Response, error) {
			return r.Client.PutReservation(ctx, now.Owner, r.Name, &api.PutReservationParams{IfMatch: tag, IdempotencyKey: &key}, now.Request)
		})
		if errors.Is(err, api.ErrPreconditionFailed) {
			continue // it was changed meanwhile, by a user or because a link failed: read it again
		}
		if err == nil {
			r.granted = changed
			log.Printf("extended until %s", r.End().Format(time.RFC3339))
		}
		return err
	}
	return errors.New("the reservation is changed again and again by others")
}

// Release cancels the reservation.
func (r *Reservation) Release(ctx context.Context) error {
	_, err := repeat(ctx, func(key string) (*http.Response, error) {
		return r.Client.DeleteReservation(ctx, r.granted.Owner, r.Name, &api.DeleteReservationParams{IdempotencyKey: &key})
	})
	if err == nil {
		log.Printf("released %s", r.Name)
	}
	return err
}

// repeat makes a request again that got no response, or was told to come later (status 429 and 503). All have one
// Idempotency-Key: the service makes the change once.
func repeat(ctx context.Context, ask func(key string) (*http.Response, error)) (out api.Reservation, err error) {
	key, wait := rand.Text(), 200*time.Millisecond
	for range 6 {
		response, failed := ask(key)
		out, err = api.Decode[api.Reservation](response, failed)
		if failed == nil && response.StatusCode != http.StatusTooManyRequests && response.StatusCode != http.StatusServiceUnavailable {
			return out, err
		}
		select {
		case <-ctx.Done():
			return out, ctx.Err()
		case <-time.After(wait):
		}
		wait *= 2
	}
	return out, err
}
