// Reserve reserves bandwidth of the network, and then sends a number of bytes.
//
// The program asks for the rate that it wants. If the service refuses, the refusal has the most that would be granted now,
// and the program takes that if it is enough. If the time of the reservation nears its end before everything has arrived,
// the program extends it. At the end, also after an error or SIGTERM, it cancels the reservation. (After SIGKILL the
// reservation ends by itself, at its end.)
//
//	go run ./reserve --to 10.0.0.9:873 --size 4000000000 --rate 200Mbit --least 50Mbit --for 120s \
//	    --service https://10.0.0.1:8420 --ca ca.pem --token-file shop.token \
//	    --from-host web1 --to-host db1 --name backup
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"headgate.dev/headgate/unit"
)

func main() {
	log.SetFlags(0)
	to := flag.String("to", "", "send to this `HOST:PORT`")
	size := flag.Int64("size", 0, "so many `BYTES`")
	want, least := unit.Rate(0), unit.Rate(0)
	flag.TextVar(&want, "rate", unit.Rate(0), "reserve this `RATE` of layer 2")
	flag.TextVar(&least, "least", unit.Rate(0), "the lowest `RATE` that is enough")
	length := flag.Duration("for", time.Minute, "reserve for this `TIME`, and extend by it")
	from, there := flag.String("from-host", "", "this `HOST`, as the network has it"), flag.String("to-host", "", "the receiving `HOST`")
	name := flag.String("name", "", "the `NAME` of the reservation")
	url := flag.String("service", "", "the `URL` of the service")
	ca, token := flag.String("ca", "", "the `FILE` with the certificate of the service's authority"), flag.String("token-file", "", "the `FILE` with the token")
	flag.Parse()
	client, err := connect(*url, *ca, *token)
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r := &Reservation{Client: client, Name: *name, From: *from, To: *there, Length: *length}
	if err := run(ctx, r, *to, *size, want, least); err != nil {
		log.Fatal(err)
	}
}

// run reserves, sends, and releases.
func run(ctx context.Context, r *Reservation, to string, size int64, want, least unit.Rate) (err error) {
	_, port, err := net.SplitHostPort(to)
	if err != nil {
		return err
	}
	if err := r.Reserve(ctx, port, want, least); err != nil {
		return err
	}
	defer func() {
		// ctx may have ended, which is a reason to release the reservation.
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err = errors.Join(err, r.Release(ctx))
	}()
	c, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "tcp", to)
	if err != nil {
		return err
	}
	defer c.Close()
	sent := make(chan error, 1)
	go func() { sent <- send(c.(*net.TCPConn), size, r.Rate()) }()
	for {
		select {
		case err := <-sent:
			if err == nil {
				log.Printf("%d bytes arrived", size)
			}
			return err
		case <-ctx.Done():
			return errors.New("told to stop")
		case <-time.After(time.Until(r.End()) / 3):
		}
		// A part of the time is left, in which a request that failed can be repeated.
		if time.Until(r.End()) < r.Length/2 {
			if err := r.Extend(ctx); err != nil {
				log.Printf("not extended: %v", err) // what is sent after the end is not held up
				time.Sleep(time.Second)
			}
		}
	}
}

// send sends at a rate below that which is reserved, and waits until the other side has received everything and closes.
func send(c *net.TCPConn, size int64, rate unit.Rate) error {
	const headers = 0.9 // of what is reserved is payload: a reservation counts the headers of layer 2 to 4
	block := make([]byte, 16<<10)
	began := time.Now()
	for sent := int64(0); sent < size; {
		n, err := c.Write(block[:min(size-sent, int64(len(block)))])
		if err != nil {
			return err
		}
		sent += int64(n)
		time.Sleep(time.Until(began.Add(time.Duration(float64(8*sent) / (headers * float64(rate)) * float64(time.Second)))))
	}
	if err := c.CloseWrite(); err != nil {
		return err
	}
	if _, err := c.Read(block[:1]); err == nil {
		return fmt.Errorf("%v has sent data: it should only receive", c.RemoteAddr())
	}
	return nil
}
