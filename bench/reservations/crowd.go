package reservations

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/bench/controllers"
	"headgate.dev/headgate/bench/inmemory"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/unit"
)

// crowd is a network of switches in memory with a controller, whose reservations a program makes.
type crowd struct {
	lab     *lab.Lab
	place   *controllers.Place
	memory  *inmemory.Process
	network inmemory.Network
	plan    inmemory.Plan
	api     *api.Client
	rnd     *rand.Rand
	names   int
}

// gather starts the network, and waits until all switches, links and hosts are known.
func gather(ctx context.Context, r *bench.Run, network inmemory.Network) (c *crowd, err error) {
	network.Controllers = []string{"127.0.0.1:" + controllers.OpenFlowPort}
	c = &crowd{network: network, plan: network.Plan(), rnd: rand.New(rand.NewPCG(network.Seed, 29))}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	if c.lab, err = lab.Up(ctx, &lab.Topology{
		Name: lab.UniqueName("bench"), Nodes: []lab.NodeSpec{{Name: controllerNode}, {Name: "other"}},
		Links: []lab.LinkSpec{{Ends: [2]string{controllerNode, "other"}}},
	}); err != nil {
		return c, err
	}
	seat := controllers.Alone(c.lab.Node(controllerNode))
	if c.place, err = controllers.Start(ctx, controllers.AcceptSwitches, seat); err != nil {
		return c, err
	}
	if c.api, err = c.controller().Client(); err != nil {
		return c, err
	}
	if c.memory, err = inmemory.Start(seat.Do); err != nil {
		return c, err
	}
	if _, err := c.memory.Tell(inmemory.Order{Do: "start", Network: &network}); err != nil {
		return c, err
	}
	began := time.Now()
	for known := -1; ; {
		n, err := api.Decode[api.Network](c.api.GetNetwork(ctx))
		switch {
		case err == nil && n.Settled && len(n.Switches) == network.Switches && len(n.Links) == 2*len(c.plan.Cables) && len(n.Hosts) >= network.Hosts:
			r.Say("%d switches, %d links and %d hosts known after %v", len(n.Switches), len(n.Links), len(n.Hosts), time.Since(began).Round(time.Millisecond))
			return c, nil
		case ctx.Err() != nil:
			return c, ctx.Err()
		case time.Since(began) > 4*time.Minute:
			return c, errors.Join(fmt.Errorf("after 4 min %d of %d switches, %d of %d links and %d of %d hosts are known", len(n.Switches), network.Switches, len(n.Links), 2*len(c.plan.Cables), len(n.Hosts), network.Hosts), err)
		case err == nil && len(n.Switches) == network.Switches && len(n.Hosts) != known:
			known = len(n.Hosts)
			if _, err := c.memory.Tell(inmemory.Order{Do: "announce", Within: time.Duration(network.Hosts) * 2 * time.Millisecond}); err != nil {
				return c, err
			}
		case err == nil && n.Settled && len(n.Hosts) < network.Hosts:
			known = -1 // some announcements were lost
		}
		if err := bench.Sleep(ctx, 500*time.Millisecond); err != nil {
			return c, err
		}
	}
}

func (c *crowd) controller() *controllers.Controller { return c.place.Controllers[0] }

func (c *crowd) close() error {
	if c == nil {
		return nil
	}
	err := errors.Join(c.memory.Close(), c.place.Close())
	if c.lab != nil {
		err = errors.Join(err, c.lab.Close())
	}
	return err
}

// addressOf returns the address of a host in memory.
func addressOf(host int) string {
	return netip.AddrFrom4([4]byte{10, 9, byte(host >> 8), byte(host)}).String()
}

// between returns a request between two hosts.
func between(from, to int, rate unit.Rate) api.ReservationRequest {
	return api.ReservationRequest{From: api.ReservationEnd{Host: new(addressOf(from))}, To: api.ReservationEnd{Host: new(addressOf(to))}, Rate: new(rate.String())}
}

// pair returns two hosts at different switches.
func (c *crowd) pair() (from, to int) {
	for from%c.network.Switches == to%c.network.Switches {
		from, to = c.rnd.IntN(c.network.Hosts), c.rnd.IntN(c.network.Hosts)
	}
	return from, to
}

// create asks for a reservation. It is refused if it does not fit.
func (c *crowd) create(ctx context.Context, r api.ReservationRequest, dry bool) (name string, granted bool, took time.Duration, err error) {
	c.names++
	return c.createNamed(ctx, fmt.Sprint("r", c.names), r, dry)
}

func (c *crowd) createNamed(ctx context.Context, name string, r api.ReservationRequest, dry bool) (_ string, granted bool, took time.Duration, err error) {
	body := api.NewReservation{
		Name: name, From: r.From, To: r.To, Rate: r.Rate, Back: r.Back, Class: r.Class, Start: r.Start, Until: r.Until, Duration: r.Duration, Protected: r.Protected, Flows: r.Flows,
	}
	began := time.Now()
	got, err := c.api.CreateReservation(ctx, &api.CreateReservationParams{DryRun: &dry}, body)
	took = time.Since(began)
	if err != nil {
		return name, false, took, err
	}
	if got.StatusCode == http.StatusConflict {
		return name, false, took, got.Body.Close()
	}
	_, err = api.Decode[api.Reservation](got, nil)
	return name, err == nil, took, err
}

// cancel cancels a reservation.
func (c *crowd) cancel(ctx context.Context, name string) error {
	_, err := api.Decode[struct{}](c.api.DeleteReservation(ctx, "-", name, &api.DeleteReservationParams{}))
	return err
}

// all returns all reservations.
func (c *crowd) all(ctx context.Context) ([]api.Reservation, error) {
	return api.ListAll(func(after *string) ([]api.Reservation, *string, error) {
		page, err := api.Decode[api.ReservationList](c.api.ListReservations(ctx, &api.ListReservationsParams{After: after}))
		return page.Items, page.Next, err
	})
}
