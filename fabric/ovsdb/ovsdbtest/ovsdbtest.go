// Package ovsdbtest starts an Open vSwitch for a test: a real ovsdb-server and a real ovs-vswitchd, with all files in a
// directory of their own.
//
// Its bridges have the dummy datapath (ovs-vswitchd(8), --enable-dummy), which is that of netdev with devices in memory:
// it needs neither root nor a namespace, and makes no device of the machine. Frames enter a port by "ovs-appctl
// netdev-dummy/receive PORT FRAME", and leave it to the file of its option tx_pcap.
package ovsdbtest

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// schema is that of Debian's package openvswitch-switch.
const schema = "/usr/share/openvswitch/vswitch.ovsschema"

// OpenVSwitch is a running Open vSwitch.
type OpenVSwitch struct {
	Dir string // of the database, sockets and logs

	t        testing.TB
	vswitchd *exec.Cmd
}

// Start starts an Open vSwitch without bridges, which ends with the test. It skips the test if it is not installed.
func Start(t testing.TB) *OpenVSwitch {
	t.Helper()
	if _, err := exec.LookPath(program("ovs-vswitchd")); err != nil {
		t.Skipf("needs Open vSwitch: apt-get install openvswitch-switch: %v", err)
	}
	dir, err := os.MkdirTemp("", "ovs") // a path of t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	o := &OpenVSwitch{Dir: dir, t: t}
	db := filepath.Join(dir, "conf.db")
	o.Run("ovsdb-tool", "create", db, schema)
	o.start("ovsdb-server", db, "--remote=p"+o.Address())
	o.await("ovsdb-server", strings.TrimPrefix(o.Address(), "unix:")) // its pidfile comes before its socket
	o.Run("ovs-vsctl", "--no-wait", "init")
	o.StartVswitchd()
	return o
}

// Address returns the address of the database, "unix:PATH".
func (o *OpenVSwitch) Address() string { return "unix:" + filepath.Join(o.Dir, "db.sock") }

// StartVswitchd starts ovs-vswitchd, after KillVswitchd.
func (o *OpenVSwitch) StartVswitchd() {
	o.t.Helper()
	o.vswitchd = o.start("ovs-vswitchd", o.Address(), "--enable-dummy=override", "--disable-system")
}

// KillVswitchd kills ovs-vswitchd, as a crash would, and returns when the database server has noticed. The database stays.
func (o *OpenVSwitch) KillVswitchd() {
	o.t.Helper()
	_ = o.vswitchd.Process.Kill() // it has ended already, or ends
	_ = o.vswitchd.Wait()
	if err := o.awaitLock(); err != nil {
		o.t.Fatalf("the database server still has the killed ovs-vswitchd: %v", err)
	}
}

// awaitLock waits until the lock of ovs-vswitchd is free: the server releases it when it reads the end of the connection, which may be
// after another session asks. Whoever gets the lock is told so by the reply or by a notification later, and returns it before
// its own connection ends (RFC 7047, sections 4.1.8 to 4.1.10).
func (o *OpenVSwitch) awaitLock() error {
	conn, err := net.Dial("unix", strings.TrimPrefix(o.Address(), "unix:"))
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return err
	}
	const lock = `{"method":"%s","params":["ovs_vswitchd"],"id":"%[1]s"}`
	if _, err := fmt.Fprintf(conn, lock, "lock"); err != nil {
		return err
	}
	for messages, unlocking := json.NewDecoder(conn), false; ; {
		var m struct {
			ID, Method string
			Result     struct{ Locked bool }
		}
		switch err := messages.Decode(&m); {
		case err != nil:
			return err
		case m.ID == "unlock":
			return nil
		case !unlocking && (m.Method == "locked" || m.Result.Locked):
			unlocking = true
			if _, err := fmt.Fprintf(conn, lock, "unlock"); err != nil {
				return err
			}
		}
	}
}

// Run runs a program such as ovs-vsctl or ovs-appctl with this Open vSwitch, and returns its output. If it fails, the
// test fails.
func (o *OpenVSwitch) Run(name string, args ...string) string {
	o.t.Helper()
	c := o.command(name, args...)
	out, err := c.CombinedOutput()
	if err != nil {
		o.t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (o *OpenVSwitch) command(name string, args ...string) *exec.Cmd {
	c := exec.Command(program(name), args...)
	c.Dir = o.Dir
	c.Env = append(os.Environ(), "OVS_RUNDIR="+o.Dir, "OVS_LOGDIR="+o.Dir, "OVS_DBDIR="+o.Dir, "OVS_SYSCONFDIR="+o.Dir)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // a test that times out runs no cleanup
	return c
}

// start starts a program that runs until the test ends, and returns when it has written its pidfile.
func (o *OpenVSwitch) start(name string, args ...string) *exec.Cmd {
	o.t.Helper()
	pidfile := filepath.Join(o.Dir, name+".pid")
	_ = os.Remove(pidfile) // of a killed one
	c := o.command(name, append(args, "--pidfile", "--log-file", "-vconsole:off", "-vsyslog:off")...)
	if err := c.Start(); err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	o.await(name, pidfile)
	return c
}

// await waits for a file that a program makes when it is ready.
func (o *OpenVSwitch) await(name, file string) {
	o.t.Helper()
	for range 3000 {
		if _, err := os.Stat(file); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	log, _ := os.ReadFile(filepath.Join(o.Dir, name+".log"))
	o.t.Fatalf("%s did not make %s: %s", name, file, log)
}

// program returns the path of a program; users' PATH often lacks /usr/sbin.
func program(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	return filepath.Join("/usr/sbin", name)
}
