package cli

import (
	"errors"
	"io"
	"slices"
	"time"

	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/view"
)

// clientsOver is the default interval over which clients' rates are measured.
const clientsOver = time.Second

func (a *app) showClients(states []shaper.State, over time.Duration, f format) error {
	if over == 0 {
		over = clientsOver
	}
	look := func() (out [][]shaper.Client, err error) {
		for _, s := range states {
			list, err := a.observer().Clients(s.Engine, s.Dev)
			if err != nil {
				return nil, err
			}
			out = append(out, list)
		}
		return out, nil
	}
	was, err := look()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(was, func(list []shaper.Client) bool { return len(list) > 0 }) {
		time.Sleep(over)
	}
	now, err := look()
	if err != nil {
		return err
	}
	all := []view.DeviceClients{}
	for i, s := range states {
		all = append(all, view.DeviceClients{Dev: s.Dev, Clients: view.ClientRates(was[i], now[i])})
	}
	return a.print(f, all, func(w io.Writer) error { return view.WriteClients(w, all) })
}

// errClientsOnServer is the error of show clients with --server.
var errClientsOnServer = errors.New("show clients does not support --server: run it on the host")
