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

	"headgate/lab"
	"headgate/lab/labtest"
	"headgate/lab/traffic"
	"headgate/unit"
)

// firstGroup is within which a link is divided by docs/install.md alone.
const firstGroup = 2 * time.Minute

// A machine is installed, made a service's host and controller, divided by a tenant, upgraded under load,
// given two controllers more, and left as it was, by what the documents tell people to type:
//
//	web1 (Debian with its systemd, controller, agent) eth0 ── the tenant's backup server
//
// In a chroot on it packages come and go as well, and leave the machine's groups alone.
func TestInstalled(t *testing.T) {
	labtest.NeedRoot(t)
	m, l := machineOf(t, operators(t)...)
	before := m.traces()

	began := time.Now()
	m.follow("install.md", "From packages")
	m.must("systemctl is-enabled headgate && ! systemctl is-active headgate")
	m.follow("install.md", "The first groups")
	m.must("tc qdisc show dev eth0 | grep htb && systemctl is-active headgate && headgate show | grep 'kept in force by the agent'")
	if took := time.Since(began); took > firstGroup {
		t.Errorf("the first group is enforced after %v, and is to be within %v", took, firstGroup)
	} else {
		t.Logf("the first group is enforced after %v", took)
	}
	m.must("man -w headgate-apply 2>/dev/null || ls /usr/share/man/man1/headgate-apply.1.gz; bash -n /usr/share/bash-completion/completions/headgate")
	m.follow("operate.md", "Change the configuration", nil, func() {
		m.must("sed -i 's/limit: [^ ]*/limit: 500Mbit/' new.yaml") // which is the edit
	})
	m.must("tc class show dev eth0 | grep 500Mbit")
	inChroot(m)

	m.follow("install.md", "A service of many hosts")
	m.until("! tc qdisc show dev eth0 | grep htb")
	backupServer(t, l)
	m.follow("tenants.md", "What you are given")
	m.follow("tenants.md", "By the API")
	m.until("headgate show | grep backup")
	m.follow("tenants.md", "By commands")
	m.follow("tenants.md", "A connection of one's own")

	m.follow("operate.md", "Secure")
	m.follow("operate.md", "Back up")
	m.until("headgate host list -o json | grep '\"connected\": true'")
	upgrade(t, m, l)
	failOver(m)

	m.follow("operate.md", "Remove", func() {
		m.must("! systemctl is-active headgate && tc qdisc show dev eth0 | grep htb")
	})
	m.clean(before)

	m.follow("install.md", "From source")
	m.must("tc qdisc show dev eth0 | grep htb && systemctl is-active headgate headgate-controller")
	m.follow("install.md", "Away again")
	m.clean(before)
}

// operators are the files that whoever installs a machine has.
func operators(t testing.TB) []string {
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

// backupServer takes what comes.
func backupServer(t testing.TB, l *lab.Lab) {
	t.Helper()
	var listener net.Listener
	if err := l.Node("eth0").Do(func() (err error) { listener, err = net.Listen("tcp", "10.0.0.2:873"); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { io.Copy(io.Discard, c); c.Close() }()
		}
	}()
}

// inChroot purges and installs packages in a chroot, as who makes images does: no service is started there,
// and the machine around it keeps its groups.
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
chroot /mnt/root getent passwd headgate
chroot /mnt/root headgate version
chroot /mnt/root dpkg --purge headgate-controller headgate-agent headgate
test -z "$(chroot /mnt/root getent passwd headgate)"
END
tc qdisc show dev eth0 | grep htb && systemctl is-active headgate && headgate show`)
}

// upgrade installs the newer version while 30 Mbit/s are sent in each of two groups, of which no packet may be
// lost. They are of UDP, because TCP also sends again what was only late on a busy machine; "headgate bench
// service" has both.
func upgrade(t *testing.T, m *machine, l *lab.Lab) {
	t.Helper()
	const settles = time.Second
	labtest.Try(t, func(c *labtest.Check) {
		m.must("headgate version | grep " + older + " || apt-get install --allow-downgrades ./dist/headgate*_" + older + "_*.deb")
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
				t.Errorf("process %s is that of the older version", process)
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
				c.Errorf("%s: of %d datagrams %d are lost", f.Name, sum.Datagrams, sum.LostDatagrams)
			} else {
				t.Logf("%s: of %d datagrams none is lost", f.Name, sum.Datagrams)
			}
		}
	})
}

// failOver makes three controllers of one, stops it, and replaces one that is lost. The second and third
// "machines" are addresses of this one.
func failOver(m *machine) {
	m.Helper()
	const (
		others    = "chmod 755 folders; for name in c2 c3; do "
		start     = "chown -R headgate: folders/$name && systemd-run --unit headgate-$name --uid headgate headgate controller -f " + work + "/controllers.yaml --name $name --data " + work + "/folders/$name"
		connected = "headgate host list --server default -o json | grep '\"connected\": true'"
	)
	m.must("ip address add 10.0.0.11/24 dev eth0 && ip address add 10.0.0.12/24 dev eth0")
	m.follow("operate.md", "Fail over")
	m.must(others + "headgate controller restore /var/backups/headgate-one -f controllers.yaml --name $name --data folders/$name; " + start + "; done")
	m.until(connected)
	for _, address := range []string{"10.0.0.11", "10.0.0.12"} { // two of three are enough to be connected
		m.until("curl -skf https://" + address + ":8420/v1/health")
	}
	m.follow("operate.md", "When one is away")
	m.until(connected)
	m.must("systemctl stop headgate-c3 && rm -r folders/c3")
	m.follow("operate.md", "When one is lost with its folder")
	m.must("mv c3 folders/c3; name=c3; " + start)
	m.until("curl -sf --cacert ca.pem https://10.0.0.12:8420/v1/health")
	m.must("systemctl stop headgate-c2 headgate-c3; ip address del 10.0.0.11/24 dev eth0; ip address del 10.0.0.12/24 dev eth0")
}
