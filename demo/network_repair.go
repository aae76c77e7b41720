package demo

import (
	"context"
	"fmt"
	"time"

	"headgate.dev/headgate/demo/sites"
	"headgate.dev/headgate/internal/sleep"
	"headgate.dev/headgate/lab/traffic"
)

// repair cuts the north path while the program sends over it, and heals it.
func (p *networkPlay) repair(ctx context.Context) error {
	const cut, heal, length, settle = 4 * time.Second, 10 * time.Second, 16 * time.Second, 2 * time.Second
	port, err := p.lab.Switch("w2").Port("e2")
	if err != nil {
		return err
	}
	set := func(ctx context.Context, to string) error {
		p.stage.say(fmt.Sprintf("  w2# ip link set dev %s %s", port.Device, to))
		out, err := p.lab.Switch("w2").Command(ctx, "ip", "link", "set", "dev", port.Device, to).CombinedOutput()
		if err != nil {
			return fmt.Errorf("ip link: %w: %s", err, out)
		}
		return nil
	}
	p.stage.say("")
	flows := []traffic.Flow{{Name: sites.App, From: sites.App, To: sites.DB, Protocol: traffic.UDP, DstPort: sites.AppPort, Schedule: traffic.Constant(p.granted)}, p.network.Backup()}
	began := time.Now()
	result, err := p.send(ctx, flows, length, func(ctx context.Context) error {
		for _, step := range []struct {
			at time.Duration
			to string
		}{{cut, "down"}, {heal, "up"}} {
			if !sleep.Until(ctx, began.Add(step.at)) {
				return ctx.Err()
			}
			if err := set(ctx, step.to); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	app := result.Flow(sites.App)
	reserved := mbits(float64(p.granted))
	p.stage.say("")
	p.promise("interrupted", "the program without half of its rate", "s", sites.Most, 1, sites.Interruption(app.Intervals, float64(p.granted)/2).Seconds())
	p.promise("rerouted", "the program over the other path", "Mbit/s", sites.Least, 0.99*reserved*(1-p.network.South.Loss), mbits(app.Between(cut+settle, heal).DeliveredRate()))
	p.promise("healed", "the program after the link is back", "Mbit/s", sites.Least, 0.99*reserved*(1-p.network.South.Loss), mbits(app.Between(heal+settle, length).DeliveredRate()))
	_, err = p.until(ctx, timeout, "the link has not come back", func(s networkState) bool { return len(s.Links) == 2*len(sites.Switches) })
	return err
}

// prove shows what the reservations were promised and got.
func (p *networkPlay) prove(ctx context.Context) error {
	if !sleep.Until(ctx, time.Now().Add(recorded)) {
		return ctx.Err()
	}
	p.stage.say("")
	return p.show(ctx, "report", "--reservations", "--server", "default")
}
