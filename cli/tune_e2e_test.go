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

	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/lab/wire"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/tokenrate"
	"headgate.dev/headgate/unit"
)

// headgate runs a headgate command on the client.
func (p *probeTest) headgate(args ...string) (out, errs string, code int) {
	p.t.Helper()
	c := p.command(p.client, args...)
	c.Env = append(c.Env, stateDirEnv+"="+filepath.Join(p.dir, "state"))
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil && c.ProcessState == nil {
		p.t.Fatal(err)
	}
	return stdout.String(), stderr.String(), c.ProcessState.ExitCode()
}

// load sends TCP in both directions, and returns the layer-2 rate and the provider's drops of
// each direction.
func (p *probeTest) load(took time.Duration) (got [2]float64, dropped [2]uint64) {
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

// tune runs "headgate tune" to the server, and parses the report.
func (p *probeTest) tune(args ...string) (r tuneReport, errs string, code int) {
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

// trains describes the trains of the last tune, for test failures.
func (p *probeTest) trains() string {
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
			fmt.Fprintf(&b, "\n%s: %s of %d packets at %.4g bit/s, %d lost, second half at %.4g bit/s; rate %+v, bucket %+v %v", d, s.Purpose, s.Count(), s.SendingRate(), s.Lost(), s.TailRate(), e.Rate, e.Bucket, s.Flaws)
		}
	}
	return b.String()
}

// file writes a file into the test's folder.
func (p *probeTest) file(name, text string) string {
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

// Tune proposes limits just below the provider's: with them the provider drops almost nothing,
// and throughput is nearly the same. A second tune measures the limit of the first, and reports
// it.
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
		if code != exitOK || r.Until == nil || r.Failed != "" {
			t.Errorf("exit %d: %s%s", code, errs, p.trains())
		}
		for _, d := range probe.Directions {
			if l := r.Proposals[d].Limit; l < 97*unit.Mbit || l >= 100*unit.Mbit {
				t.Errorf("%s: the proposed limit is %v", d, l)
			}
			if c := r.Rechecked[d]; c.PathLoss() > 0.001 || c.Rate < 95e6 || c.Rate > 100e6 {
				t.Errorf("%s: the second measurement is %+v", d, c)
			}
			if sent := r.Measured.Directions[d].Bytes; sent > 50_000_000 {
				t.Errorf("%s: tune sent %s", d, sent)
			}
		}
		if !strings.Contains(r.Document, "guarantee: 40%") {
			t.Errorf("the groups are not in the document:\n%s", r.Document)
		}
		if out, errs, code := p.headgate("confirm"); code != exitOK {
			t.Fatalf("confirm: exit %d\n%s%s", code, out, errs)
		}
		with, lostWith := p.load(4 * time.Second)
		t.Logf("without: %.4g bit/s, %d dropped; with: %.4g bit/s, %d dropped", without, lostWithout, with, lostWith)
		for i, d := range []string{"out", "in"} {
			if lostWithout[i] == 0 || lostWith[i] > lostWithout[i]/100 || with[i] < 80e6 {
				t.Errorf("%s: drops at the provider are %d, and were %d; %.4g bit/s delivered", d, lostWith[i], lostWithout[i], with[i])
			}
		}
		r, _, code = p.tune("-f", file)
		for d, p := range r.Proposals {
			if p.Limit > 0 || code != exitFailed || !strings.Contains(p.Cannot, "headgate clear --dev server") {
				t.Errorf("%s: with a limit in force tune proposes %+v, exit %d", d, p, code)
			}
		}
	})
}

// A provider passes 300 Mbit/s for 1 MB, and then 100 Mbit/s: short trains measure 300, and
// the verification train measures 100. The other direction has no limiter: nothing is proposed
// and changed there.
func TestTuneLargeBucket(t *testing.T) {
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		p := probeLab(t,
			link.Spec{Rate: unit.Gbit, Queue: link.Amount{Time: 50 * time.Millisecond}, Bucket: &link.Bucket{Rate: 100 * unit.Mbit, Size: 1_000_000, Peak: 300 * unit.Mbit}},
			link.Spec{Rate: unit.Gbit})
		r, errs, code := p.tune("--apply", "--bytes", "12MB")
		if in := r.Proposals[probe.In]; in.Limit > 0 || !strings.Contains(in.Cannot, "write --bytes 48MB") {
			t.Errorf("in: %+v", in)
		}
		if out := r.Proposals[probe.Out]; out.Limit < 97*unit.Mbit || out.Limit >= 100*unit.Mbit || code != exitOK {
			t.Errorf("out: %+v, exit %d, %s%s", out, code, errs, p.trains())
		}
		if c := r.Rechecked[probe.Out]; c.PathLoss() > 0.001 || c.Rate < 95e6 || c.Rate > 100e6 || len(r.Rechecked) != 1 {
			t.Errorf("the second measurement is %+v", r.Rechecked)
		}
		if strings.Contains(r.Document, "in:") {
			t.Errorf("the document limits in:\n%s", r.Document)
		}
		if out, errs, code := p.headgate("confirm", "--roll-back"); code != exitOK {
			t.Errorf("roll back: exit %d\n%s%s", code, out, errs)
		}
	})
}

// The output is a valid configuration, and a device that is not on the path is an error.
func TestTuneOutput(t *testing.T) {
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		provider := link.Spec{Rate: unit.Gbit, Bucket: &link.Bucket{Rate: 100 * unit.Mbit, Size: 50_000}}
		p := probeLab(t, provider, provider)
		args := []string{"--peer", "fd00::2", "--key-file", p.key(), "--capacity", "1Gbit"}
		out, errs, code := p.headgate(append([]string{"tune", "server"}, args...)...)
		file := p.file("proposed.yaml", out)
		if checked, mistakes, checkCode := p.headgate("check", "-f", file); code != exitOK || checkCode != exitOK || !strings.Contains(out, "# server: ") || strings.Count(checked, "limit 98.") != 2 {
			t.Errorf("exit %d and %d\n%s%s%s%s", code, checkCode, out, errs, checked, mistakes)
		}
		if out, errs, code := p.headgate(append([]string{"tune", "lo"}, args...)...); code != exitFailed || out != "" || !strings.Contains(errs, "is reached through server, not lo") {
			t.Errorf("lo: exit %d\n%s%s", code, out, errs)
		}
	})
}
