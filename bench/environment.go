package bench

import (
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/internal/awake"
)

// Environment is what the results depend on besides the code.
type Environment struct {
	Date   time.Time `json:"date"`
	Kernel string    `json:"kernel"`
	HZ     int       `json:"hz,omitempty"` // 0 if unknown
	CPU    string    `json:"cpu"`
	CPUs   int       `json:"cpus"`
	// MemoryBytes is the machine's memory.
	MemoryBytes uint64 `json:"memory_bytes"`
	Go          string `json:"go"`
	Commit      string `json:"commit,omitempty"` // ends with "+" for uncommitted changes
	// CongestionControl is the machine's default, Available are all that it has. Flows set their own.
	CongestionControl string   `json:"congestion_control"`
	Available         []string `json:"available_congestion_control"`
	// Qdiscs are those of qdiscsAsked that this kernel has; nil if they could not be tested.
	Qdiscs []string `json:"qdiscs"`
	// Offloads are those that are on for a new veth device; a bench that changes them says so. nil if
	// they could not be read.
	Offloads []string `json:"veth_offloads"`
	// Tools are the versions of the programs that the bench runs, as they print them.
	Tools map[string]string `json:"tools,omitempty"`
	// KeptAwake: the processors are those of a virtual machine and were kept from halting (package
	// awake).
	KeptAwake bool `json:"processors_kept_awake,omitempty"`
	// Load is the load average of the last minute at the start.
	Load float64 `json:"load_average_1m"`
}

// qdiscsAsked are the qdiscs from which a limiter may be built.
var qdiscsAsked = []string{"htb", "tbf", "hfsc", "prio", "drr", "qfq", "bfifo", "pfifo", "fq", "fq_codel", "codel", "cake", "pie", "red", "sfq", "netem"}

// ThisMachine describes the current state of the machine.
func ThisMachine() Environment {
	e := Environment{
		Date: time.Now().UTC().Truncate(time.Second), CPUs: runtime.NumCPU(), Go: runtime.Version(), Commit: commit(),
		Kernel: kernel(), HZ: hertz(), CPU: field("/proc/cpuinfo", "model name"), MemoryBytes: memory(),
		CongestionControl: word("/proc/sys/net/ipv4/tcp_congestion_control"), KeptAwake: awake.Virtual(),
		Available: strings.Fields(word("/proc/sys/net/ipv4/tcp_available_congestion_control")),
	}
	inFreshNamespace(func() { e.Qdiscs, e.Offloads = qdiscs(qdiscsAsked), vethOffloads() })
	if f := strings.Fields(word("/proc/loadavg")); len(f) > 0 {
		e.Load, _ = strconv.ParseFloat(f[0], 64)
	}
	return e
}

func word(path string) string {
	b, _ := os.ReadFile(path)
	return strings.TrimSpace(string(b))
}

func field(path, name string) string {
	for line := range strings.Lines(word(path)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func kernel() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:]) + " " + unix.ByteSliceToString(u.Machine[:])
}

func memory() uint64 {
	var s unix.Sysinfo_t
	if unix.Sysinfo(&s) != nil {
		return 0
	}
	return s.Totalram * uint64(s.Unit)
}

var hzLine = regexp.MustCompile(`(?m)^CONFIG_HZ=(\d+)$`)

// hertz reads the timer frequency from the kernel's configuration.
func hertz() int {
	m := hzLine.FindStringSubmatch(kernelConfig())
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

func kernelConfig() string {
	if f, err := os.Open("/proc/config.gz"); err == nil {
		defer f.Close()
		if z, err := gzip.NewReader(f); err == nil {
			b, _ := io.ReadAll(z)
			return string(b)
		}
	}
	var u unix.Utsname
	_ = unix.Uname(&u)
	return word("/boot/config-" + unix.ByteSliceToString(u.Release[:]))
}

// commit returns the commit from which the program was built: from the build information, or from git
// in the working directory if that is this module.
func commit() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		var rev, changed string
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				rev = s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				changed = "+"
			}
		}
		if rev != "" {
			return rev[:min(12, len(rev))] + changed
		}
	}
	dir, err := os.Getwd()
	for ; err == nil && dir != "/"; dir = filepath.Dir(dir) {
		if strings.HasPrefix(word(filepath.Join(dir, "go.mod")), "module headgate.dev/headgate\n") {
			out, err := exec.Command("git", "-C", dir, "describe", "--always", "--abbrev=12", "--exclude=*", "--dirty=+").Output()
			if err == nil {
				return strings.TrimSpace(string(out))
			}
		}
	}
	return ""
}

// versions returns the first line of each program's version output.
func versions(tools [][]string) map[string]string {
	out := map[string]string{}
	for _, ask := range tools {
		said, err := exec.Command(ask[0], ask[1:]...).Output()
		line, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
		if err != nil {
			line = "not available: " + err.Error()
		}
		out[ask[0]] = line
	}
	return out
}
