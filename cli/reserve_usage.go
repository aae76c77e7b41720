package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/unit"
	"headgate.dev/headgate/unit/rounded"
	"headgate.dev/headgate/view"
)

// shownReservation is a reservation and what each direction of it does. The API has them as two resources: the ETag of a reservation
// does not change with its packets.
type shownReservation struct {
	api.Reservation
	Usage []api.ReservationUsage `json:"usage"`
}

// usage returns the usage of a reservation, or of all that the caller may see.
func (q request) usage(owner, name *string) ([]api.ReservationUsage, error) {
	got, err := api.Decode[api.ReservationUsageList](q.client.ListReservationUsage(q.ctx, &api.ListReservationUsageParams{Owner: owner, Reservation: name}))
	return got.Items, err
}

func limitText(u api.ReservationUsage) string {
	if u.LimitBps == nil {
		return "-"
	}
	return rounded.Rate(float64(*u.LimitBps))
}

// writeUsage prints what one reservation does, a line for each direction: the rates of the latest second, and the totals.
func writeUsage(w io.Writer, all []api.ReservationUsage) error {
	rows := [][]string{{"DIRECTION", "HELD BY", "RESERVED", "OFFERED", "DELIVERED", "LIMIT", "BORROWED", "LENT", "UNMET"}}
	for _, u := range all {
		rows = append(rows, append([]string{string(u.Direction), string(u.HeldBy)}, usageCells(u)...))
	}
	if err := text.Table(w, "", rows); err != nil {
		return err
	}
	for _, u := range all {
		if u.Problem != nil {
			fmt.Fprintf(w, "%s: %s\n", u.Direction, *u.Problem)
		}
	}
	return nil
}

func usageCells(u api.ReservationUsage) []string {
	rate := func(bps int64) string { return rounded.Rate(float64(bps)) }
	return []string{
		unit.Rate(u.ReservedBps).String(), rate(u.OfferedBps), rate(u.DeliveredBps), limitText(u),
		rounded.Bytes(uint64(u.BorrowedBytes)), rounded.Bytes(uint64(u.LentBytes)), fmt.Sprintf("%.0f s", u.UnmetSeconds),
	}
}

// usageName is the name of a reservation and, of what is not forward, the direction.
func usageName(u api.ReservationUsage) string {
	name := reservationName(api.Reservation{Owner: u.Owner, Name: u.Name})
	if u.Direction == api.ReservationBack {
		return name + " back"
	}
	return name
}

// usageFrame is one reading of the usage.
type usageFrame struct {
	Time  time.Time              `json:"time"`
	Items []api.ReservationUsage `json:"items"`
}

func reserveTopCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "top [NAME]",
		Short: "Watch what reservations use, lend and lack",
		Long: `Top prints a line for each direction of each reservation and interval: what is reserved, offered and delivered,
the limit at this moment, and since the reservation began or the controller that leads took over what it has
borrowed and lent, and the seconds in which it offered what it holds and got less. The service measures once per
second. With -o json each interval is a line with one object. A tenant sees its own reservations alone.`,
		Example: `  headgate reserve top
  headgate reserve top backup --interval 5s
  headgate reserve top --once -o json | jq '.items[] | select(.unmet_seconds > 0)'`,
		Args: cobra.MaximumNArgs(1),
	}
	interval := c.Flags().Duration("interval", time.Second, "time between two readings")
	once := c.Flags().Bool("once", false, "print one reading and exit")
	output, server := tableOrJSONFlag(c), serverFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if *interval < minInterval || *interval > maxInterval {
			return usageError{fmt.Errorf("--interval %v is out of range: write %v to %v", *interval, minInterval, maxInterval), c.CommandPath()}
		}
		client, err := service(*server)
		if err != nil {
			return err
		}
		ctx, stop := interrupted()
		defer stop()
		q := request{ctx: ctx, client: client, args: args}
		var owner, name *string
		if len(args) == 1 {
			of, called, err := q.reservation()
			if err != nil {
				return err
			}
			if _, err := api.Decode[api.Reservation](client.GetReservation(ctx, of, called)); err != nil {
				return err
			}
			owner, name = &of, &called
		}
		// One reading is complete, as the service has the rates.
		return view.Poll(ctx, *interval, false, func() ([]api.ReservationUsage, error) { return q.usage(owner, name) }, func(now []api.ReservationUsage, _ bool) error {
			if err := writeUsageFrame(a.out, *output == "json", usageFrame{time.Now(), now}); err != nil || !*once {
				return err
			}
			stop()
			return nil
		})
	}
	c.ValidArgsFunction = firstArg(reservations.complete(server))
	return c
}

// writeUsageFrame prints one reading.
func writeUsageFrame(w io.Writer, asJSON bool, f usageFrame) error {
	if asJSON {
		if f.Items == nil {
			f.Items = []api.ReservationUsage{}
		}
		return json.NewEncoder(w).Encode(f)
	}
	rows := [][]string{{f.Time.Local().Format("15:04:05"), "CLASS", "RESERVED", "OFFERED", "DELIVERED", "LIMIT", "BORROWED", "LENT", "UNMET"}}
	for _, u := range f.Items {
		rows = append(rows, append([]string{usageName(u), fmt.Sprint(u.Class)}, usageCells(u)...))
	}
	return text.Table(w, "", rows)
}
