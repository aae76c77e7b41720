package cli

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/unit"
)

func reserveCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "reserve",
		Short: "Reserve bandwidth across the network of a service",
		Long: `Reserve promises bandwidth between two hosts of the network, now or in advance. The service finds paths
with enough bandwidth at every moment of the reservation. If there are none, it names a link that has not
enough, and what it would grant instead. The agent of the source host, or of a Linux router, or an
OpenFlow switch with meters holds packets to it.

A tenant reserves within the bounds that the operator has given it with "headgate tenant set". An
operator writes the reservation of a tenant as TENANT/NAME.`,
		Args: cobra.ArbitraryArgs,
		RunE: helpOrUnknown,
	}
	c.AddCommand(reserveCreateCommand(a), reserveApplyCommand(a), reserveWhatIfCommand(a), reserveListCommand(a), reserveShowCommand(a),
		reserveTopCommand(a), reserveChangeCommand(a), reserveCancelCommand(a), reserveCalendarCommand(a))
	return c
}

// operatorOwner is the owner of the operator's reservations in the API.
const operatorOwner = "-"

var reservations = resource[api.Reservation]{
	kind: "reservation", columns: []string{"NAME", "STATE", "FROM", "TO", "RATE", "BACK", "CARRY", "CLASS", "START", "END"},
	row: func(r api.Reservation) []string {
		return []string{
			reservationName(r), string(r.State), endText(r.Request.From), endText(r.Request.To), unit.Rate(r.RateBps).String(), rateOrNone(r.BackBps),
			carrier(r.Request), fmt.Sprint(orZero(r.Request.Class)), timeText(r.Start), timeText(r.End),
		}
	},
	page: func(q request, after *string) ([]api.Reservation, *string, error) {
		page, err := api.Decode[api.ReservationList](q.client.ListReservations(q.ctx, &api.ListReservationsParams{After: after}))
		return page.Items, page.Next, err
	},
	name: func(r api.Reservation) *string { return new(reservationName(r)) },
	get: func(q request) (*http.Response, error) {
		owner, name, err := q.reservation()
		if err != nil {
			return nil, err
		}
		return q.client.GetReservation(q.ctx, owner, name)
	},
}

// writeReservation prints a reservation and its paths.
func writeReservation(w io.Writer, r api.Reservation, names switchNames) error {
	if err := reservations.table(w, []api.Reservation{r}); err != nil {
		return err
	}
	if r.Degraded != nil {
		fmt.Fprintf(w, "\ndegraded: %s: %v of %v are reserved\n", *r.Degraded, unit.Rate(r.ReservedBps), unit.Rate(r.RateBps))
	}
	if r.Relays != nil {
		fmt.Fprintf(w, "\ncarried by relay agents %s and %s, between which it is reserved\n", r.Relays.Near, r.Relays.Far)
	}
	if len(r.Paths) == 0 {
		return nil
	}
	rows := [][]string{{"PATH", "RATE", "BACK", "USE"}}
	for _, p := range r.Paths {
		use := "traffic"
		if p.Spare {
			use = "spare"
		}
		rows = append(rows, []string{names.path(p, r.Request.From), unit.Rate(p.RateBps).String(), rateOrNone(p.BackBps), use})
	}
	fmt.Fprintln(w)
	return text.Table(w, "", rows)
}

// switchNames returns the names of the switches that the service knows, none if the caller may not see the network.
func (q request) switchNames() switchNames {
	n, err := api.Decode[api.Network](q.client.GetNetwork(q.ctx))
	if err != nil {
		return nil
	}
	return namesOf(n.Switches)
}

func orZero(v *int) int {
	if v == nil {
		return 0
	}
	return *v
}

// carrier returns what carries the traffic of a request, - for itself.
func carrier(r api.ReservationRequest) string {
	if r.Carry == nil {
		return "-"
	}
	return string(*r.Carry)
}

func rateOrNone(bps int64) string {
	if bps == 0 {
		return "-"
	}
	return unit.Rate(bps).String()
}

// reservationName returns NAME, or TENANT/NAME.
func reservationName(r api.Reservation) string {
	if r.Owner == operatorOwner {
		return r.Name
	}
	return r.Owner + "/" + r.Name
}

// endText prints what the request names.
func endText(e api.ReservationEnd) string {
	switch {
	case e.Host != nil:
		return *e.Host
	case e.Site != nil:
		return "site:" + *e.Site
	case e.Vlan != nil:
		return fmt.Sprintf("vlan:%d", *e.Vlan)
	}
	return orNone(e.Prefix)
}

func timeText(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }

// path prints the ports from which a path goes on, and its last switch: s1/2 s2/3 s4.
func (n switchNames) path(p api.ReservationPath, from api.ReservationEnd) string {
	if len(p.Links) == 0 {
		if from.At == nil {
			return "one switch"
		}
		return n.of(from.At.Switch)
	}
	var hops []string
	for _, l := range p.Links {
		hops = append(hops, n.port(l.From))
	}
	return strings.Join(append(hops, n.of(p.Links[len(p.Links)-1].To.Switch)), " ")
}

// reservation returns the owner and the name of the reservation that the first argument names: NAME is one of the
// caller's.
func (q request) reservation() (owner, name string, err error) {
	if owner, name, ok := strings.Cut(q.args[0], "/"); ok {
		return cmp.Or(owner, operatorOwner), name, nil
	}
	who, err := api.Decode[api.Principal](q.client.GetSession(q.ctx))
	return cmp.Or(orNone(who.Tenant), operatorOwner), q.args[0], err
}

func reserveListCommand(a *app) *cobra.Command {
	return reservations.listCommand(a, &cobra.Command{
		Use: "list", Short: "List reservations, also those that ended within the last hour",
		Example: `  headgate reserve list
  headgate reserve list -o json | jq '.[] | select(.state == "degraded")'`,
		Args: cobra.NoArgs,
	})
}

func reserveShowCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "show NAME", Short: "Show a reservation with its paths and its usage",
		Long: `Show prints a reservation and its paths: the ports through which switches send its traffic, and the
last switch. An operator sees switches by their names. Of a reservation that has begun it prints for each
direction the rates of the latest second and the limit at this moment, and in total what it has borrowed and
lent, and the seconds in which it offered what it holds and got less.`,
		Example: `  headgate reserve show backup
  headgate reserve show shop/backup -o yaml`,
		Args: cobra.ExactArgs(1),
	}
	var names switchNames
	server := query(a, c, func(q request) (out shownReservation, err error) {
		if out.Reservation, err = api.Decode[api.Reservation](reservations.get(q)); err != nil {
			return out, err
		}
		names = q.switchNames()
		// The usage is known to the leader alone. Without one the reservation is shown all the same.
		out.Usage, err = q.usage(&out.Owner, &out.Name)
		if err != nil {
			a.note("the usage is not known: %v", err)
		}
		return out, nil
	}, func(w io.Writer, r shownReservation) error {
		if err := writeReservation(w, r.Reservation, names); err != nil || len(r.Usage) == 0 {
			return err
		}
		fmt.Fprintln(w)
		return writeUsage(w, r.Usage)
	})
	c.ValidArgsFunction = firstArg(reservations.complete(server))
	return c
}

func reserveCancelCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "cancel NAME", Aliases: []string{"delete"}, Short: "Cancel a reservation",
		Example: "  headgate reserve cancel backup", Args: cobra.ExactArgs(1),
	}
	server, dry := serverFlag(c), dryRunFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		client, err := service(*server)
		if err != nil {
			return err
		}
		q := request{c.Context(), client, args, dry}
		owner, name, err := q.reservation()
		if err != nil {
			return err
		}
		if _, err := api.Decode[struct{}](client.DeleteReservation(q.ctx, owner, name, &api.DeleteReservationParams{DryRun: dry})); err != nil {
			return err
		}
		return outcome(q, reservations.kind, "cancelled")(a.out)
	}
	c.ValidArgsFunction = firstArg(reservations.complete(server))
	return c
}

func reserveCalendarCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "calendar SWITCH/PORT", Short: "Print what is reserved on a link over time",
		Long: `Calendar prints the rate that is reserved on the link that leaves a switch at a port, and the rate that is
free, from now on for a week. At a port of hosts it is the line to the hosts, or with --arriving the line
from them.`,
		Example: `  headgate reserve calendar s1/3
  headgate reserve calendar 0000000000000001/3 --start "2026-05-01 08:00" --for 12h -o json`,
		Args: cobra.ExactArgs(1),
	}
	start := c.Flags().String("start", "", "from this `TIME` on, such as 18:00, \"2026-05-01 18:00\", 2026-05-01T18:00:00Z or +2h (default: now)")
	length := c.Flags().Duration("for", 7*24*time.Hour, "for this long")
	arriving := c.Flags().Bool("arriving", false, "the direction that arrives at the port")
	var end time.Time
	query(a, c, func(q request) (out api.ReservationCalendar, err error) {
		from, err := parseMoment(c, "start", *start, time.Now())
		if err != nil {
			return out, err
		}
		end = from.Add(*length)
		return api.Decode[api.ReservationCalendar](q.client.GetReservationCalendar(q.ctx, &api.GetReservationCalendarParams{Link: q.args[0], Arriving: arriving, From: &from, To: &end}))
	}, func(w io.Writer, got api.ReservationCalendar) error {
		rows := [][]string{{"FROM", "UNTIL", "RESERVED", "FREE"}}
		for i, s := range got.Steps {
			until, free := end, "unlimited"
			if i+1 < len(got.Steps) {
				until = got.Steps[i+1].At
			}
			if got.LimitBps != nil {
				free = unit.Rate(max(0, *got.LimitBps-s.ReservedBps)).String()
			}
			rows = append(rows, []string{timeText(s.At), timeText(until), unit.Rate(s.ReservedBps).String(), free})
		}
		return text.Table(w, "", rows)
	})
	return c
}
