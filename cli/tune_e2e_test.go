package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"headgate/lab/labtest"
	"headgate/lab/link"
	"headgate/lab/traffic"
	"headgate/lab/wire"
	"headgate/probe"
	"headgate/probe/tokenrate"
	"headgate/unit"
)

// headgate runs it on the client.
func (p *probed) headgate(args ...string) (out, errs string, code int) {
	p.t.Helper()
	c := p.command(p.client, args...)
	c.Env = append(c.Env, stateEnv+"="+filepath.Join(p.dir, "state"))
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil && c.ProcessState == nil {
		p.t.Fatal(err)
	}
	return stdout.String(), stderr.String(), c.ProcessState.ExitCode()
}

// load sends by TCP in both directions for a while: what each gets, as a rate of
// layer 2, and what the provider drops of it.
func (p *probed) load(took time.Duration) (got [2]float64, dropped [2]uint64) {
	p.t.Helper()
	before, _ := p.lab.WireStats(0)
	s, err := traffic.Start(p.t.Context(), p.lab.Host, []traffic.Flow{
		{Name: "out", From: "client", To: "server", Protocol: traffic.TCP, DstPort: 5001, Congestion: "cubic", Schedule: traffic.Constant(traffic.Unlimited)},
		{Name: "in", From: "server", To: "client", Protocol: traffic.TCP, DstPort: 5002, Congestion: "cubic", Schedule: traffic.Constant(traffic.Unlimited)},
	}, traffic.Options{Duration: took})
	if err != nil {
		p.t.Fatal(err)
	}
	r := s.Wait()
	after, _ := p.lab.WireStats(0)
	for i, name := range []string{"out", "in"} {
		f := r.Flow(name)
		tail := f.Between(took/3, took)
		got[i] = tail.DeliveredRate()
		dropped[i] = drops(after[i]) - drops(before[i])
	}
	return got, dropped
}

func drops(s wire.Stats) uint64 { return s.Overflowed + s.Policed }

// tune measures to the server, and reads the answer.
func (p *probed) tune(args ...string) (r tuneReport, errs string, code int) {
	p.t.Helper()
	out, errs, code := p.headgate(append([]string{"tune", "server", "--peer", "10.0.0.2", "--key-file", p.key(), "--capacity", "1Gbit", "--log", filepath.Join(p.dir, "tune.log"), "-o", "json"}, args...)...)
	if out == "" {
		p.t.Fatalf("exit %d: %s", code, errs)
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		p.t.Fatalf("%v\n%s", err, out)
	}
	return r, errs, code
}

// trains says what the last tune sent, and what of it came.
func (p *probed) trains() string {
	f, err := os.Open(filepath.Join(p.dir, "tune.log"))
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	r, err := probe.ReadLog(f)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for d, samples := range r.Samples {
		for i := range samples {
			s := &samples[i]
			e := tokenrate.Estimate(s, math.Inf(1))
			fmt.Fprintf(&b, "\n%s: %s of %d at %.4g bit/s, %d lost, the second half at %.4g bit/s; rate %+v, bucket %+v %v", d, s.Purpose, s.Count(), s.SendingRate(), s.Lost(), tailRate(s), e.Rate, e.Bucket, s.Flaws)
		}
	}
	return b.String()
}

// file writes a file for it.
func (p *probed) file(name, text string) string {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return path
}

const tuneGroups = `kind: Interface
dev: server
out: {limit: 1Gbit, groups: [{name: web, guarantee: 40%, match: [{dport: 443}]}, {name: rest, default: true}]}
in: {limit: 1Gbit, groups: [{name: all, default: true}]}
`

// Limits just under what the provider gives: then the provider drops nothing any
// more, and hardly less gets through. A second measurement sees the first's limit,
// and says so.
//
//	client == 100 Mbit/s, 200 kB, 50 ms of queue == server
func TestTune(t *testing.T) {
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		provider := link.Spec{Rate: unit.Gbit, Queue: link.Amount{Time: 50 * time.Millisecond}, Bucket: &link.Bucket{Rate: 100 * unit.Mbit, Size: 200_000}}
		p := probeLab(t, provider, provider)
		without, lostWithout := p.load(4 * time.Second)
		file := p.file("groups.yaml", tuneGroups)
		r, errs, code := p.tune("-f", file, "--apply")
		if code != done || r.Until == nil || r.Failed != "" {
			t.Errorf("exit %d: %s%s", code, errs, p.trains())
		}
		for _, d := range probe.Directions {
			if l := r.Proposals[d].Limit; l < 97*unit.Mbit || l >= 100*unit.Mbit {
				t.Errorf("%s: a limit of %v", d, l)
			}
			if c := r.Rechecked[d]; c.path() > 0.001 || c.Rate < 95e6 || c.Rate > 100e6 {
				t.Errorf("%s: measured again it is %+v", d, c)
			}
			if sent := r.Measured.Directions[d].Bytes; sent > 50_000_000 {
				t.Errorf("%s: %s were sent for it", d, sent)
			}
		}
		if !strings.Contains(r.Document, "guarantee: 40%") {
			t.Errorf("the groups are gone:\n%s", r.Document)
		}
		if out, errs, code := p.headgate("confirm"); code != done {
			t.Fatalf("confirm: exit %d\n%s%s", code, out, errs)
		}
		with, lostWith := p.load(4 * time.Second)
		t.Logf("without: %.4g bit/s, %d dropped; with: %.4g bit/s, %d dropped", without, lostWithout, with, lostWith)
		for i, d := range []string{"out", "in"} {
			if lostWithout[i] == 0 || lostWith[i] > lostWithout[i]/100 || with[i] < 80e6 {
				t.Errorf("%s: the provider drops %d, and dropped %d; %.4g bit/s get through", d, lostWith[i], lostWithout[i], with[i])
			}
		}
		r, _, code = p.tune("-f", file)
		for d, p := range r.Proposals {
			if p.Limit > 0 || code != failed || !strings.Contains(p.Cannot, "headgate clear --dev server") {
				t.Errorf("%s: through its own limit it proposes %+v, exit %d", d, p, code)
			}
		}
	})
}

// A provider who lets 300 Mbit/s through until 1 MB is gone, and then 100: short trains
// say 300, and the train that tries that says 100. Back there is a link and no limit:
// nothing is proposed, and so nothing changed there.
func TestTuneDeceived(t *testing.T) {
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		p := probeLab(t,
			link.Spec{Rate: unit.Gbit, Queue: link.Amount{Time: 50 * time.Millisecond}, Bucket: &link.Bucket{Rate: 100 * unit.Mbit, Size: 1_000_000, Peak: 300 * unit.Mbit}},
			link.Spec{Rate: unit.Gbit})
		r, errs, code := p.tune("--apply", "--bytes", "12MB")
		if in := r.Proposals[probe.In]; in.Limit > 0 || !strings.Contains(in.Cannot, "write --bytes 48MB") {
			t.Errorf("in: %+v", in)
		}
		if out := r.Proposals[probe.Out]; out.Limit < 97*unit.Mbit || out.Limit >= 100*unit.Mbit || code != done {
			t.Errorf("out: %+v, exit %d, %s%s", out, code, errs, p.trains())
		}
		if c := r.Rechecked[probe.Out]; c.path() > 0.001 || c.Rate < 95e6 || c.Rate > 100e6 || len(r.Rechecked) != 1 {
			t.Errorf("measured again it is %+v", r.Rechecked)
		}
		if strings.Contains(r.Document, "in:") {
			t.Errorf("in is limited:\n%s", r.Document)
		}
		if out, errs, code := p.headgate("confirm", "--roll-back"); code != done {
			t.Errorf("roll back: exit %d\n%s%s", code, out, errs)
		}
	})
}

// What is printed is a configuration, and a device that leads elsewhere is refused.
func TestTunePrints(t *testing.T) {
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		provider := link.Spec{Rate: unit.Gbit, Bucket: &link.Bucket{Rate: 100 * unit.Mbit, Size: 50_000}}
		p := probeLab(t, provider, provider)
		args := []string{"--peer", "fd00::2", "--key-file", p.key(), "--capacity", "1Gbit"}
		out, errs, code := p.headgate(append([]string{"tune", "server"}, args...)...)
		file := p.file("proposed.yaml", out)
		if checked, mistakes, checkCode := p.headgate("check", "-f", file); code != done || checkCode != done || !strings.Contains(out, "# server: ") || strings.Count(checked, "limit 98.") != 2 {
			t.Errorf("exit %d and %d\n%s%s%s%s", code, checkCode, out, errs, checked, mistakes)
		}
		if out, errs, code := p.headgate(append([]string{"tune", "lo"}, args...)...); code != failed || out != "" || !strings.Contains(errs, "is reached through server, and not through lo") {
			t.Errorf("lo: exit %d\n%s%s", code, out, errs)
		}
	})
}
