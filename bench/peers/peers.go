package peers

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"headgate.dev/headgate/shaper"
)

// Limiter limits a device of the calling thread's network namespace. Clear removes everything of it.
type Limiter interface {
	Apply(p shaper.Plan) error
	Clear(dev string) error
}

// ErrUnsupported is a plan that a peer does not support.
var ErrUnsupported = errors.New("not supported by this peer")

// ifb is the device through which a peer redirects incoming traffic.
const ifb = "peerifb"

// tc runs lines of tc commands as one batch.
func tc(lines ...string) error {
	cmd := exec.Command("tc", "-batch", "-")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	return output(cmd)
}

func ip(args ...string) error { return output(exec.Command("ip", args...)) }

func output(cmd *exec.Cmd) error {
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, firstLine(said.String()))
	}
	return nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// redirect redirects incoming packets of dev through the IFB, and returns the IFB's name.
func redirect(dev string) (string, error) {
	if err := errors.Join(ip("link", "add", ifb, "type", "ifb"), ip("link", "set", ifb, "up")); err != nil {
		return "", err
	}
	return ifb, tc(
		"qdisc add dev "+dev+" handle ffff: ingress",
		"filter add dev "+dev+" parent ffff: protocol all u32 match u32 0 0 action mirred egress redirect dev "+ifb,
	)
}

// clear removes everything that a peer may have set up.
func clear(dev string) error {
	// Each fails if there is nothing to remove.
	_ = tc("qdisc del dev " + dev + " root")
	_ = tc("qdisc del dev " + dev + " ingress")
	_ = tc("qdisc del dev " + dev + " clsact")
	_ = ip("link", "del", ifb)
	return nil
}

// each calls set with the device that has a direction's queue, for each direction of the plan.
func each(p shaper.Plan, set func(dev string, in bool) error) error {
	if p.Out != nil {
		if err := set(p.Dev, false); err != nil {
			return err
		}
	}
	if p.In != nil {
		dev, err := redirect(p.Dev)
		if err != nil {
			return err
		}
		return set(dev, true)
	}
	return nil
}
