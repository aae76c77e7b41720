package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/internal/sleep"
	"headgate.dev/headgate/unit"
)

func reserveCreateCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "create NAME",
		Short: "Reserve bandwidth between two ends of the network",
		Long: `Create reserves a rate from one end to another for a time, or the rate at which a volume is moved by a
deadline. The service grants it with the paths, or refuses it with what it would grant instead.`,
		Example: `  headgate reserve create backup --from web1 --to 10.0.0.9 --rate 200Mbit --for 2h
  headgate reserve create copy --from web1 --to store --volume 2TB --until "2026-05-02 06:00"
  headgate reserve create video --from studio --to site:arena --rate 1Gbit --back 50Mbit --start 18:00 --for 4h --class 1 --protected
  headgate reserve create shop/sync --from web1 --to web2 --rate 50Mbit --protocol tcp --port 873 --for 1h --wait`,
		Args: cobra.ExactArgs(1),
	}
	f, server, dry, output := newReservationFlags(c), serverFlag(c), dryRunFlag(c), outputFlag(c)
	f.complete(c, server)
	wait := c.Flags().Bool("wait", false, "wait until the reservation is active")
	c.RunE = func(c *cobra.Command, args []string) error {
		q, err := reserveRequest(c, *server, args, dry)
		if err != nil {
			return err
		}
		made, err := q.create(c, a, f, *dry, *output)
		if err != nil {
			return err
		}
		if *wait && !*dry {
			if made, err = a.awaitActive(q, made); err != nil {
				return err
			}
		}
		return a.print(*output, made, func(w io.Writer) error {
			if *dry {
				fmt.Fprintf(w, "reservation %s: would be granted\n", args[0])
			}
			return writeReservation(w, made, q.switchNames())
		})
	}
	return c
}

// whatIfName is the name in the request of a what-if. A reservation with it would be in the way.
const whatIfName = "what-if--"

func reserveWhatIfCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "what-if",
		Short: "Print what would be granted, without reserving anything",
		Long: `What-if prints the reservation that "headgate reserve create" would get at this moment with the same
flags: its paths, and with --until or --volume its start, end and rate.`,
		Example: `  headgate reserve what-if --from web1 --to 10.0.0.9 --rate 200Mbit --for 2h
  headgate reserve what-if --from web1 --to store --volume 2TB --until +12h -o json`,
		Args: cobra.NoArgs,
	}
	f, server, output := newReservationFlags(c), serverFlag(c), outputFlag(c)
	f.complete(c, server)
	c.RunE = func(c *cobra.Command, _ []string) error {
		dry := true
		q, err := reserveRequest(c, *server, []string{whatIfName}, &dry)
		if err != nil {
			return err
		}
		made, err := q.create(c, a, f, true, *output)
		if err != nil {
			return err
		}
		made.Name = c.Name()
		return a.print(*output, made, func(w io.Writer) error { return writeReservation(w, made, q.switchNames()) })
	}
	return c
}

func reserveRequest(c *cobra.Command, server string, args []string, dry *bool) (request, error) {
	client, err := service(server)
	return request{ctx: c.Context(), client: client, args: args, dry: dry}, err
}

// create asks for the reservation that the flags describe, with the name in the first argument. A refusal is also printed
// in the format of -o, if that is not the table.
func (q request) create(c *cobra.Command, a *app, f *reservationFlags, dry bool, output format) (out api.Reservation, err error) {
	r, err := f.request(c, q, time.Now())
	if err != nil {
		return out, err
	}
	owner, name, err := q.reservation()
	if err != nil {
		return out, err
	}
	out, err = api.Decode[api.Reservation](q.client.CreateReservation(q.ctx, &api.CreateReservationParams{DryRun: &dry}, api.NewReservation{
		Name: name, Owner: &owner, From: r.From, To: r.To, Flows: r.Flows, Class: r.Class, Rate: r.Rate, Back: r.Back, Start: r.Start, Until: r.Until,
		Duration: r.Duration, Volume: r.Volume, Paths: r.Paths, Protected: r.Protected, OnDemand: r.OnDemand, Disjoint: r.Disjoint, Carry: r.Carry,
	}))
	return out, a.refused(err, output)
}

// refused returns the error of a request with the counter-offers, and prints a refusal for programs.
func (a *app) refused(err error, output format) error {
	var refused *api.RefusedError
	if output == "table" || !errors.As(err, &refused) {
		return withOffers(err)
	}
	return errors.Join(a.print(output, struct {
		Refusal api.ReservationRefusal `json:"refusal"`
	}{refused.Refusal}, nil), err)
}

func reserveChangeCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "change NAME",
		Short: "Change the rate, the end or the paths of a reservation",
		Long: `Change keeps what is not given as a flag. A reservation is never counted twice: what it has counts as free
for it, and it keeps its paths where they have enough bandwidth. It can be extended up to an hour after
its end.`,
		Example: `  headgate reserve change backup --rate 300Mbit
  headgate reserve change backup --end +2h
  headgate reserve change backup --move --dry-run`,
		Args: cobra.ExactArgs(1),
	}
	var rate, back rateFlag
	c.Flags().Var(&rate, "rate", "the new rate, such as 300Mbit")
	c.Flags().Var(&back, "back", "the new rate of the other direction; 0bit is none")
	length := c.Flags().Duration("for", 0, "last this long from its start on, such as 3h")
	end := c.Flags().String("end", "", "end at this `TIME`, "+momentUsage)
	move := c.Flags().Bool("move", false, "look for the best paths")
	c.MarkFlagsMutuallyExclusive("for", "end")
	server, dry, output := serverFlag(c), dryRunFlag(c), outputFlag(c)
	c.ValidArgsFunction = firstArg(reservations.complete(server))
	c.RunE = func(c *cobra.Command, args []string) error {
		if !slices.ContainsFunc([]string{"rate", "back", "for", "end", "move"}, c.Flags().Changed) {
			return usageError{errors.New("no change is given: set --rate, --back, --for, --end or --move"), c.CommandPath()}
		}
		q, err := reserveRequest(c, *server, args, dry)
		if err != nil {
			return err
		}
		owner, name, err := q.reservation()
		if err != nil {
			return err
		}
		now, tag, err := api.DecodeWithETag[api.Reservation](q.client.GetReservation(q.ctx, owner, name))
		if err != nil {
			return err
		}
		if tag == nil {
			return fmt.Errorf("reservation %s does not exist: \"headgate reserve list\" prints all", args[0])
		}
		next := now.Request
		if c.Flags().Changed("rate") {
			next.Rate = new(unit.Rate(rate).String())
		}
		if c.Flags().Changed("back") {
			if next.Back = nil; back > 0 {
				next.Back = new(unit.Rate(back).String())
			}
		}
		if c.Flags().Changed("for") {
			next.Duration = new(length.String())
		}
		if *end != "" {
			at, err := parseMoment(c, "end", *end, time.Now())
			if err != nil {
				return err
			}
			next.Duration = new(at.Sub(now.Start).Truncate(time.Millisecond).String())
		}
		made, err := api.Decode[api.Reservation](q.client.PutReservation(q.ctx, owner, name, &api.PutReservationParams{IfMatch: tag, DryRun: dry, Move: move}, next))
		if err := a.refused(err, *output); err != nil {
			return err
		}
		return a.print(*output, made, func(w io.Writer) error {
			if err := outcome(q, reservations.kind, "changed")(w); err != nil {
				return err
			}
			return writeReservation(w, made, q.switchNames())
		})
	}
	return c
}

// Intervals of --wait, chosen for Headgate.
const (
	// activeInterval is how often the state is read.
	activeInterval = time.Second
	// progressInterval is how often progress is printed.
	progressInterval = 10 * time.Second
)

// awaitActive waits until a reservation is active, and prints on standard error how long that takes.
func (a *app) awaitActive(q request, r api.Reservation) (api.Reservation, error) {
	var printed time.Time
	for {
		switch r.State {
		case api.ReservationActive:
			return r, nil
		case api.ReservationDegraded:
			return r, fmt.Errorf("reservation %s is degraded: %s", reservationName(r), orNone(r.Degraded))
		case api.ReservationEnded:
			return r, fmt.Errorf("reservation %s has ended", reservationName(r))
		}
		if now := time.Now(); now.Sub(printed) >= progressInterval {
			printed = now
			a.note("reservation %s begins at %s, in %v", reservationName(r), timeText(r.Start), max(0, r.Start.Sub(now)).Round(time.Second))
		}
		if !sleep.Until(q.ctx, time.Now().Add(activeInterval)) {
			return r, context.Cause(q.ctx)
		}
		next, err := api.Decode[api.Reservation](q.client.GetReservation(q.ctx, r.Owner, r.Name))
		if err != nil {
			return r, err
		}
		r = next
	}
}
