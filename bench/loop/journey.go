package loop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab"
)

var minutes15 = bench.Target{Op: "<=", Value: 15, Unit: "min"}

func journeyCases() []bench.Case {
	return []bench.Case{{
		Name: "journey", Run: journey, Takes: bench.Takes(0, 3*time.Minute),
		Claims: []bench.Claim{
			bench.NewClaim("journey/time", "from git clone to the end of the commands of docs/tour.md, \"Do it yourself\": a lab file, a controller, relay agents, a reserved and relayed transfer", minutes15),
			bench.NewClaim("journey/reserved", "rate of the transfer by iperf3 beside 60 Mbit/s of UDP on paths of 40 and 20 Mbit/s, of the 30 Mbit/s that are reserved, with the headers of TCP", part95),
			bench.NewClaim("journey/plain", "the same without a reservation and relay agents", bench.Target{Op: bench.Measured, Unit: "%"}),
			bench.NewClaim("journey/left", "labs that the commands leave", bench.Target{Op: "<=", Value: 0, Unit: "labs"}),
		},
	}}
}

// journeyRate is what the tour reserves.
const journeyRate = 30e6

// journey runs the commands of the tour in a fresh clone of the repository around the working directory.
func journey(ctx context.Context, r *bench.Run) error {
	if r.Quick && !r.Few {
		return errFull
	}
	if _, err := os.Stat("docs/tour.md"); err != nil {
		return errors.New("it clones the repository, and follows its docs/tour.md: run the bench in the repository's folder")
	}
	dir, err := os.MkdirTemp("", "headgate-journey-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	clone := filepath.Join(dir, "headgate")
	began := time.Now()
	if err := shell(ctx, ".", nil, "git clone --quiet . "+clone+" && cd "+clone+" && make build"); err != nil {
		return err
	}
	built := time.Since(began)
	commands, err := tourCommands(filepath.Join(clone, "docs/tour.md"))
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll("/tmp/tour") }()
	var out strings.Builder
	if err := shell(ctx, clone, &out, commands, "PATH="+clone+":"+os.Getenv("PATH"), "XDG_CONFIG_HOME="+dir); err != nil {
		return errors.Join(err, lab.Down("tour"))
	}
	took := time.Since(began)
	var rates []float64 // iperf3 prints what its server received in such a line
	for _, m := range regexp.MustCompile(`([\d.]+) Mbits/sec\s+receiver`).FindAllStringSubmatch(out.String(), -1) {
		rate, _ := strconv.ParseFloat(m[1], 64)
		rates = append(rates, rate)
	}
	if len(rates) != 2 {
		return fmt.Errorf("iperf3 printed the rates %v, want two: %s", rates, bench.LastLines(out.String()))
	}
	labs, err := lab.Leftovers()
	if err != nil {
		return err
	}
	left := 0
	for _, l := range labs {
		if l.Name == "tour" {
			left++
		}
	}
	sheet := r.Sheet(bench.Ours)
	sheet.Set("journey/time", took.Minutes())
	sheet.Note("journey/time", "%.0f s, %.0f of them to clone and build, with the modules in the cache of Go if they are; the time to read the page is not in it", took.Seconds(), built.Seconds())
	sheet.Set("journey/reserved", 100*rates[1]*1e6/tcpPart/journeyRate)
	sheet.Set("journey/plain", 100*rates[0]*1e6/tcpPart/journeyRate)
	sheet.Set("journey/left", float64(left))
	return nil
}

// shell runs commands in a folder, with their output in out if that is not nil.
func shell(ctx context.Context, dir string, out *strings.Builder, commands string, env ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "bash", "-e", "-c", commands)
	c.Dir, c.Env, c.WaitDelay = dir, append(os.Environ(), env...), 5*time.Second
	text, err := c.CombinedOutput()
	if out != nil {
		out.Write(text)
	}
	if err != nil {
		return fmt.Errorf("%w: %s", err, bench.LastLines(string(text)))
	}
	return nil
}

// tourCommands returns the shell commands of the section of the tour for a network of one's own.
func tourCommands(file string) (all string, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	_, section, ok := strings.Cut(string(text), "\n## Do it yourself\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(section, -1) {
		all += block[1]
	}
	if !ok || all == "" {
		return "", fmt.Errorf("%s has no commands in a section \"Do it yourself\"", file)
	}
	return all, nil
}
