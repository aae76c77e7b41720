package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/api/server"
	"headgate.dev/headgate/config"
	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/reserve"
)

// appliedReservation is what reserve apply did with one document.
type appliedReservation struct {
	// Change is created, changed or unchanged.
	Change      string          `json:"change"`
	Reservation api.Reservation `json:"reservation"`
}

func reserveApplyCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Create or change the reservations of a file",
		Long: `Apply creates the reservations of documents of kind: Reservation, and changes those that exist: their rates,
their duration and the links that they avoid. A reservation that is as its document says stays untouched, so
that the command can be repeated. First the service is asked about each document alone. If one is refused
nothing is changed. If one is refused later, because it does not fit beside the others, those that
were created are cancelled again.`,
		Example: `  headgate reserve apply -f reservations.yaml
  headgate reserve apply -f reservations.yaml --dry-run
  headgate reserve apply -f night.yaml --tenant shop -o json`,
		Args: cobra.NoArgs,
	}
	files := fileFlag(c)
	tenant := c.Flags().String("tenant", "", "an operator reserves for this `TENANT` (default: the operator's own reservations)")
	at, dry, output := serverFlag(c), dryRunFlag(c), outputFlag(c)
	completeFlag(c, "tenant", tenants.complete(at))
	c.RunE = func(c *cobra.Command, _ []string) error {
		if len(*files) == 0 {
			return usageError{errors.New("the file is missing: set -f to a file with documents of kind: Reservation"), c.CommandPath()}
		}
		set, err := read(*files, a.in)
		if err != nil {
			return err
		}
		if len(set.Reservations) == 0 {
			return config.Errors{{File: strings.Join(*files, " "), Message: "no document with kind: Reservation: write one, or apply the documents with their own commands" + readers(set)}}
		}
		q, err := reserveRequest(c, *at, nil, dry)
		if err != nil {
			return err
		}
		done, err := q.applyReservations(set.Reservations, *tenant, *dry)
		if err != nil {
			return err
		}
		return a.print(*output, done, func(w io.Writer) error {
			rows := make([]api.Reservation, len(done))
			for i, one := range done {
				fmt.Fprintf(w, "reservation %s: %s\n", reservationName(one.Reservation), one.Change)
				rows[i] = one.Reservation
			}
			fmt.Fprintln(w)
			return reservations.table(w, rows)
		})
	}
	return c
}

// applyReservations creates or changes reservations. An error names the document, and then none of them was created.
func (q request) applyReservations(all []config.Reservation, tenant string, dry bool) ([]appliedReservation, error) {
	var problems config.Errors
	wanted := make([]api.ReservationRequest, len(all))
	owner := operatorOwner
	if tenant != "" {
		owner = tenant
	} else if own, _, err := (request{ctx: q.ctx, client: q.client, args: []string{"x"}}).reservation(); err == nil {
		owner = own
	}
	before := make([]*api.Reservation, len(all))
	planned := make([]api.Reservation, len(all))
	for i, r := range all {
		var err error
		if wanted[i], err = q.requestOf(r.Request); err == nil {
			before[i], err = q.existing(owner, r.Name)
		}
		if err == nil {
			planned[i], err = q.put(owner, r.Name, wanted[i], true)
		}
		if err != nil {
			problems = append(problems, problemAt(r, err))
		}
	}
	if len(problems) > 0 {
		return nil, problems
	}
	out := make([]appliedReservation, len(all))
	for i, r := range all {
		after := planned[i]
		if !dry {
			var err error
			if after, err = q.put(owner, r.Name, wanted[i], false); err != nil {
				return nil, q.undo(owner, all[:i], before[:i], problemAt(r, err))
			}
		}
		out[i] = appliedReservation{reservationChange(before[i], after), after}
	}
	return out, nil
}

// undo cancels the reservations that were created before a problem, and returns the problem.
func (q request) undo(owner string, all []config.Reservation, before []*api.Reservation, problem config.Error) error {
	errs := []error{config.Errors{problem}}
	for i, r := range all {
		if before[i] != nil {
			errs = append(errs, fmt.Errorf("reservation %s existed before and is as its document says", r.Name))
			continue
		}
		if _, err := api.Decode[struct{}](q.client.DeleteReservation(q.ctx, owner, r.Name, &api.DeleteReservationParams{})); err != nil {
			errs = append(errs, fmt.Errorf("reservation %s was created and cannot be cancelled: %w", r.Name, err))
		} else {
			errs = append(errs, fmt.Errorf("reservation %s was created and is cancelled again", r.Name))
		}
	}
	return errors.Join(errs...)
}

func (q request) existing(owner, name string) (*api.Reservation, error) {
	r, err := api.Decode[api.Reservation](q.client.GetReservation(q.ctx, owner, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return &r, err
}

func (q request) put(owner, name string, r api.ReservationRequest, dry bool) (api.Reservation, error) {
	return api.Decode[api.Reservation](q.client.PutReservation(q.ctx, owner, name, &api.PutReservationParams{DryRun: &dry}, r))
}

// reservationChange says what a request did.
func reservationChange(before *api.Reservation, after api.Reservation) string {
	switch {
	case before == nil:
		return "created"
	case before.RateBps == after.RateBps && before.BackBps == after.BackBps && before.Start.Equal(after.Start) && before.End.Equal(after.End) && reflect.DeepEqual(before.Paths, after.Paths):
		return "unchanged"
	}
	return "changed"
}

// problemAt is the error of the service about a document, at the key that it names.
func problemAt(r config.Reservation, err error) config.Error {
	text := withOffers(err).Error()
	key := ""
	if first, rest, ok := strings.Cut(text, ": "); ok {
		if k := config.ReservationKey(first); !strings.ContainsAny(k, " \"") {
			key, text = k, rest
		}
	}
	out := config.Error{Message: "reservation " + r.Name + ": " + text, Key: key}
	out.File, out.Line, out.Column = r.Where(key)
	return out
}

// requestOf returns the request of a document. Links to avoid have the ids of switches and the numbers of ports, for which the service is
// asked.
func (q request) requestOf(r reserve.Request) (out api.ReservationRequest, err error) {
	out = server.ReservationForm(r)
	if len(r.AvoidNames) == 0 {
		return out, nil
	}
	known, err := api.Decode[api.Network](q.client.GetNetwork(q.ctx))
	if err != nil {
		return out, err
	}
	var avoid []api.NetworkLinkEnds
	for i, ends := range r.AvoidNames {
		from, err1 := portNamed(known, ends[0])
		to, err2 := portNamed(known, ends[1])
		if err := errors.Join(err1, err2); err != nil {
			return out, fmt.Errorf("avoid[%d]: %w", i, err)
		}
		avoid = append(avoid, api.NetworkLinkEnds{From: from, To: to})
	}
	out.Avoid = &avoid
	return out, nil
}

// portNamed finds a port that is written SWITCH/PORT, with the name or the id of the switch, and the number or the name of the port.
func portNamed(n api.Network, text string) (api.NetworkPortID, error) {
	sw, port, _ := strings.Cut(text, "/")
	for _, s := range n.Switches {
		id, err := fabric.ParseDPID(sw)
		if orNone(s.Name) != sw && (err != nil || id.String() != s.Id) {
			continue
		}
		for _, p := range s.Ports {
			if fmt.Sprint(p.Number) == port || orNone(p.Name) == port {
				return api.NetworkPortID{Switch: s.Id, Port: p.Number}, nil
			}
		}
		return api.NetworkPortID{}, fmt.Errorf("switch %s has no port %s: \"headgate network show ports\" lists them", sw, port)
	}
	return api.NetworkPortID{}, fmt.Errorf("no switch has the name %s: \"headgate network show switches\" lists them", sw)
}
