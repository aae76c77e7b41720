package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"headgate.dev/headgate/demo/sites"
	"headgate.dev/headgate/internal/sleep"
	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

func wrapped(t string) []string { return text.Wrap(t, "  ", 78) }

// measure has the hosts measure, until the controller has a capacity that was measured.
func (p *networkPlay) measure(ctx context.Context) error {
	schedule := "measures: [{measure: path, every: 12h}]\nbytes: 8MB\nbudget: 1GB\nhosts:\n"
	for _, h := range sites.Hosts {
		schedule += fmt.Sprintf("  - {host: %s, links: [wan]}\n", h)
	}
	if err := p.writeFile("schedule.yaml", schedule); err != nil {
		return err
	}
	p.stage.say("", "The operator lets what is measured count, down to 40 % of a port:", "")
	if err := p.describe(ctx, applyMeasured); err != nil {
		return err
	}
	if _, err := p.headgate(ctx, sites.Controller, "probe", "schedule", "set", "-f", "schedule.yaml", "--server", "default"); err != nil {
		return err
	}
	const patience = 2 * time.Minute
	began := time.Now()
	s, err := p.until(ctx, patience, "no link was found to be weaker than its port", func(s networkState) bool {
		p.stage.status(fmt.Sprintf("2/7 measure, %.0f s", time.Since(began).Seconds()))
		return measuredCapacity(s) > 0
	})
	if err != nil && (ctx.Err() != nil || len(s.Links) == 0) {
		return err
	}
	p.stage.say("", fmt.Sprintf("After %.0f s:", time.Since(began).Seconds()), "")
	if err := p.show(ctx, "network", "show", "faults", "--server", "default"); err != nil {
		return err
	}
	p.stage.say("")
	p.promise("measured", "capacity of the limited link", "Mbit/s", sites.Around, mbits(float64(p.network.Limiter)), mbits(float64(measuredCapacity(s))))
	return nil
}

const applyMeasured = "apply_measured: 40%"

// measuredCapacity is the capacity of the north link if it was measured, else 0. It is that of the direction in which the program sends, because the
// other may be measured earlier.
func measuredCapacity(s networkState) int64 {
	names := map[string]string{}
	for _, one := range s.Switches {
		names[one.ID] = one.Name
	}
	for _, l := range s.Links {
		if l.Source == "measured" && [2]string{names[l.From.Switch], names[l.To.Switch]} == sites.NorthEnds {
			return l.Capacity
		}
	}
	return 0
}

// reservation is what the demo reads of a reservation.
type reservation struct {
	Rate    int64 `json:"rate_bps"`
	Request json.RawMessage
	Refusal struct{ Most json.RawMessage }
	Detail  string
}

// appName is the name of the program's reservation.
const appName = "app"

// reserve has the program ask for more than the limited link gives, and take the most that is offered.
func (p *networkPlay) reserve(ctx context.Context) error {
	program := &tenantProgram{client: p.operator, say: p.stage.say}
	body := fmt.Sprintf(`{"from":{"host":"%s"},"to":{"host":"%s"},"rate":"%v","duration":"1h","flows":[{"protocol":"udp","destination_ports":"%d"}]}`,
		p.addr(sites.App), p.addr(sites.DB), p.network.Ask(), sites.AppPort)
	p.stage.say("")
	var got reservation
	for refused := false; ; refused = true {
		r, err := program.asks(ctx, http.MethodPut, "/v1/reservations/-/"+appName, body)
		if err != nil {
			return err
		}
		got = reservation{}
		if err := json.Unmarshal(r.Answer, &got); err != nil {
			return err
		}
		if r.Status == http.StatusOK {
			break
		}
		if refused || got.Refusal.Most == nil {
			return fmt.Errorf("the request was answered by %s", r.text())
		}
		body = string(got.Refusal.Most)
	}
	p.granted = unit.Rate(got.Rate)
	p.stage.say("")
	p.promise("offered", fmt.Sprintf("reserved: %d %% of what was measured", sites.Reservable), "Mbit/s", sites.Around, mbits(float64(p.network.Limiter)*sites.Reservable/100), mbits(float64(p.granted)))
	return p.inForceNow(ctx)
}

// inForceNow waits for the cycle in which a change of reservations comes into force.
func (p *networkPlay) inForceNow(ctx context.Context) error {
	if !sleep.Until(ctx, time.Now().Add(2*time.Second)) {
		return ctx.Err()
	}
	return nil
}

func mbits(bps float64) float64 { return bps / 1e6 }

// lend sends the traffic of the program beside the backup.
func (p *networkPlay) lend(ctx context.Context) error {
	const phase, settle = 6 * time.Second, 2 * time.Second
	result, err := p.send(ctx, p.network.Lending(p.granted, phase), 3*phase, nil)
	if err != nil {
		return err
	}
	app, backup := result.Flow(sites.App), result.Flow("backup")
	between := func(f *traffic.FlowResult, from, to time.Duration) float64 {
		return f.Between(from, to).DeliveredRate()
	}
	reserved, little := mbits(float64(p.granted)), mbits(float64(sites.Little(p.granted)))
	p.stage.say("")
	p.promise("protected", "the program beside the backup", "Mbit/s", sites.Least, 0.99*reserved, mbits(between(app, settle, phase)))
	p.promise("lending", "the program while it lends", "Mbit/s", sites.Least, 0.99*little, mbits(between(app, phase, 2*phase)))
	p.promise("lent", "the backup while the program lends", "Mbit/s", sites.Least, 0.95*(mbits(float64(p.network.Limiter))-little), mbits(between(backup, phase+settle, 2*phase)))
	p.promise("returned", "the program 2 s after it wakes", "Mbit/s", sites.Least, 0.99*reserved, mbits(between(app, 2*phase+settle, 3*phase)))
	return nil
}

// send runs flows for a time, with something done meanwhile, and shows their rates each second.
func (p *networkPlay) send(ctx context.Context, flows []traffic.Flow, length time.Duration, meanwhile func(context.Context) error) (*traffic.Result, error) {
	const interval = 100 * time.Millisecond
	var bits []float64
	ticks := 0
	session, err := traffic.Start(ctx, p.lab.Host, flows, traffic.Options{Duration: length, Interval: interval, OnInterval: func(all []traffic.FlowInterval) {
		bits, ticks = append(bits, make([]float64, len(all)-len(bits))...), ticks+1
		for i, one := range all {
			bits[i] += one.DeliveredL2Bits
		}
		if ticks%10 != 0 {
			return
		}
		line := fmt.Sprintf("%6d s", ticks/10)
		for i, one := range all {
			line += fmt.Sprintf("  %s %.1f", one.Name, mbits(bits[i]))
			bits[i] = 0
		}
		p.stage.say(line + "  Mbit/s")
	}})
	if err != nil {
		return nil, err
	}
	if meanwhile != nil {
		if err := meanwhile(ctx); err != nil {
			session.Stop()
			session.Wait()
			return nil, err
		}
	}
	result := session.Wait()
	for _, f := range result.Flows {
		if f.Error != "" {
			return nil, fmt.Errorf("flow %s: %s", f.Name, f.Error)
		}
	}
	return result, ctx.Err()
}
