package packaging

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// firstGroupWithin is the time within which docs/install.md alone leads to the first enforced group.
const firstGroupWithin = 2 * time.Minute

// The commands of the documents install a machine, make it a host and a controller, let a tenant create
// groups, upgrade the packages under load, add two controllers, and restore the machine's former state:
//
//	web1 (Debian with its systemd, controller, agent) eth0 ── the tenant's backup server
//
// Packages are also removed and installed in a chroot on the machine, which must not change its groups.
func TestInstalled(t *testing.T) {
	labtest.NeedRoot(t)
	m, l := machineOf(t, operatorFiles(t)...)
	before := m.snapshot()

	began := time.Now()
	m.follow("install.md", "Build Debian packages")
	m.follow("install.md", "Install on a host")
	m.must("systemctl is-enabled headgate && ! systemctl is-active headgate")
	m.follow("install.md", "Configure the first groups")
	m.must("tc qdisc show dev eth0 | grep htb && systemctl is-active headgate && headgate show | grep 'managed by the agent'")
	if took := time.Since(began); took > firstGroupWithin {
		t.Errorf("the first group is enforced after %v, want at most %v", took, firstGroupWithin)
	} else {
		t.Logf("the first group is enforced after %v", took)
	}
	m.must("man -w headgate-apply 2>/dev/null || ls /usr/share/man/man1/headgate-apply.1.gz; bash -n /usr/share/bash-completion/completions/headgate")
	m.follow("operate.md", "Reload the configuration")
	m.follow("operate.md", "Test a change with automatic rollback", func() {
		m.must("sed -i 's/limit: [^ ]*/limit: 500Mbit/' new.yaml") // the edit of the document
	})
	m.must("tc class show dev eth0 | grep 500Mbit")
	inChroot(m)

	m.follow("install.md", "Install a controller")
	m.follow("install.md", "Join a host to a controller")
	m.follow("install.md", "Leave all devices to the controller")
	m.until("! tc qdisc show dev eth0 | grep htb")
	serveNeighbour(t, l, "10.0.0.2:873", func(c net.Conn) { io.Copy(io.Discard, c) })
	m.follow("tenants.md", "Get access to a tenant's group")
	m.follow("tenants.md", "List your groups")
	m.follow("tenants.md", "Create groups below your group")
	m.follow("tenants.md", "Request a larger guarantee")
	m.follow("tenants.md", "Avoid lost updates and repeat requests safely")
	m.follow("tenants.md", "Read rates, usage and events")
	m.follow("tenants.md", "Assign a connection by the API")
	m.follow("tenants.md", "Create a token for a program")
	m.until("headgate show | grep backup")
	m.follow("tenants.md", "Use the command line")
	m.follow("tenants.md", "Assign a connection from a program")

	m.follow("operate.md", "Check the sandbox of the services")
	m.follow("operate.md", "Replace the first operator token")
	m.follow("operate.md", "Revoke a host")
	m.follow("operate.md", "Create the key for measurements")
	m.follow("operate.md", "Back up configuration and controller")
	m.follow("operate.md", "Restore a controller")
	m.until("headgate host list -o json | grep '\"connected\": true'")
	upgrade(t, m, l)
	failOver(m)

	m.follow("operate.md", "Uninstall packages", func() {
		m.must("! systemctl is-active headgate && tc qdisc show dev eth0 | grep htb")
	})
	m.compareSnapshot(before)

	m.follow("install.md", "Install from source")
	m.follow("install.md", "Install a controller from source")
	m.follow("install.md", "Upgrade an installation from source")
	m.must("tc qdisc show dev eth0 | grep htb && systemctl is-active headgate headgate-controller")
	m.follow("install.md", "Uninstall")
	m.compareSnapshot(before)
}

// operatorFiles returns the files that an operator has before the installation.
func operatorFiles(t testing.TB) []string {
	t.Helper()
	dist := filepath.Join(t.TempDir(), "dist")
	if err := os.Mkdir(dist, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{older, newer} {
		for _, file := range packages(t, release(t, version)) {
			run(t, "cp", file, dist)
		}
	}
	program := filepath.Join(t.TempDir(), "headgate")
	run(t, "cp", binary(release(t, older), older), program)
	units := filepath.Join(t.TempDir(), "packaging")
	run(t, "cp", "-r", ".", units)
	return []string{dist, program, units}
}

// serveNeighbour runs a server in the neighbour, which handles each connection.
func serveNeighbour(t testing.TB, l *lab.Lab, address string, handle func(net.Conn)) {
	t.Helper()
	var listener net.Listener
	if err := l.Node("eth0").Do(func() (err error) { listener, err = net.Listen("tcp", address); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { handle(c); c.Close() }()
		}
	}()
}

// inChroot purges and installs packages in a chroot, as for building images: no service is started there, and
// the machine outside the chroot keeps its groups.
func inChroot(m *machine) {
	m.Helper()
	m.must(`unshare --mount bash -ex <<'END'
mount -t tmpfs memory /mnt
mkdir /mnt/changed /mnt/work /mnt/root
mount -t overlay -o lowerdir=/,upperdir=/mnt/changed,workdir=/mnt/work overlay /mnt/root
mount -t proc proc /mnt/root/proc
mount --rbind /sys /mnt/root/sys
chroot /mnt/root dpkg --purge headgate headgate-agent
test ! -e /mnt/root/etc/headgate -a ! -e /mnt/root/var/lib/headgate
chroot /mnt/root dpkg --install ` + work + `/dist/headgate*_` + older + `_*.deb
test -L /mnt/root/etc/systemd/system/multi-user.target.wants/headgate.service
test -L /mnt/root/etc/systemd/system/multi-user.target.wants/headgate-relay.service
chroot /mnt/root getent passwd headgate
chroot /mnt/root headgate version
chroot /mnt/root dpkg --purge headgate-controller headgate-agent headgate-relay headgate
test -z "$(chroot /mnt/root getent passwd headgate)"
END
tc qdisc show dev eth0 | grep htb && systemctl is-active headgate && headgate show`)
}

// upgrade installs the newer version while 30 Mbit/s are sent in each of two groups. No packet may be lost. The
// traffic is UDP, because TCP also retransmits packets that are only delayed on a busy machine; "headgate bench
// service" measures both.
func upgrade(t *testing.T, m *machine, l *lab.Lab) {
	t.Helper()
	const settles = time.Second
	labtest.Try(t, func(c *labtest.Check) {
		m.must("headgate version | grep " + older + " || apt-get install --allow-downgrades ./dist/headgate{,-agent,-controller}_" + older + "_*.deb")
		m.until("headgate show | grep backup") // the agent has the groups
		session, err := traffic.Start(c.Context(), l.Host, []traffic.Flow{
			{Name: "rest", From: "web1", To: "eth0", Protocol: traffic.UDP, DstPort: 5001, Schedule: traffic.Constant(30 * unit.Mbit)},
			{Name: "shop/backup", From: "web1", To: "eth0", Protocol: traffic.UDP, DstPort: 873, Schedule: traffic.Constant(30 * unit.Mbit)},
		}, traffic.Options{Duration: commandWithin, Interval: 100 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		defer session.Stop()
		began := time.Now()
		time.Sleep(settles)
		processes := m.must("systemctl show -P MainPID headgate headgate-controller")
		m.follow("operate.md", "Upgrade")
		m.must("headgate version | grep " + newer)
		m.until("headgate host show web1 -o json | grep '\"version\": \"" + newer + "\"'")
		for _, process := range strings.Fields(m.must("systemctl show -P MainPID headgate headgate-controller")) {
			if slices.Contains(strings.Fields(processes), process) {
				t.Errorf("process %s still runs the older version", process)
			}
		}
		time.Sleep(settles)
		ended := time.Since(began)
		session.Stop()
		for _, f := range session.Wait().Flows {
			if f.Error != "" {
				t.Fatalf("%s: %s", f.Name, f.Error)
			}
			sum := f.Between(settles, ended)
			if sum.DeliveredBytes == 0 || sum.LostDatagrams > 0 {
				c.Errorf("%s: of %d datagrams %d were lost", f.Name, sum.Datagrams, sum.LostDatagrams)
			} else {
				t.Logf("%s: of %d datagrams none was lost", f.Name, sum.Datagrams)
			}
		}
	})
}

// failOver adds two controllers to the first, stops the first, and replaces a lost one. The second and third
// controllers run on the same machine with addresses of their own.
func failOver(m *machine) {
	m.Helper()
	const (
		others    = "chmod 755 folders; for name in c2 c3; do "
		start     = "chown -R headgate: folders/$name && systemd-run --unit headgate-$name --uid headgate headgate controller -f " + work + "/controllers.yaml --name $name --data " + work + "/folders/$name"
		connected = "headgate host list --server default -o json | grep '\"connected\": true'"
	)
	m.must("ip address add 10.0.0.11/24 dev eth0 && ip address add 10.0.0.12/24 dev eth0")
	m.follow("operate.md", "Convert one controller to three")
	m.must(others + "headgate controller restore /var/backups/headgate-one -f controllers.yaml --name $name --data folders/$name --confirmed; " + start + "; done")
	m.until(connected)
	for _, address := range []string{"10.0.0.11", "10.0.0.12"} { // connected only shows that two of the three run
		m.until("curl -skf https://" + address + ":8420/v1/health")
	}
	m.follow("operate.md", "Use another controller after a failure")
	m.until(connected)
	m.must("systemctl stop headgate-c3 && rm -r folders/c3")
	m.follow("operate.md", "Replace a lost controller")
	m.must("mv c3 folders/c3; name=c3; " + start)
	m.until("curl -sf --cacert ca.pem https://10.0.0.12:8420/v1/health")
	m.must("systemctl stop headgate-c2 headgate-c3; ip address del 10.0.0.11/24 dev eth0; ip address del 10.0.0.12/24 dev eth0")
}
