package device

import (
	"strings"
	"testing"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// A new limit with too much loss or a wrong rate is an error.
func TestRecheck(t *testing.T) {
	for want, c := range map[string]Recheck{
		"":                          {Sent: 105e6, Rate: 100e6, Lost: 0.03, QueueLoss: 0.03},
		"lost on the path":          {Sent: 105e6, Rate: 100e6, Lost: 0.05, QueueLoss: 0.03},
		"through a limit":           {Sent: 105e6, Rate: 104e6},
		"only 60.00Mbit of a limit": {Sent: 105e6, Rate: 60e6},
	} {
		err := c.Check(probe.Out, 100*unit.Mbit)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
}
