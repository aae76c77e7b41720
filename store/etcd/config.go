package etcd

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
)

// Values chosen for Headgate.
const (
	// quota is the default size limit of the store: 16,000 groups are 3 MB, and each change of them takes
	// as much until it is compacted. See store.Store.Maintain.
	quota = 4 << 30
	// maxRequest and maxOperations allow the largest transactions of package store.
	maxRequest, maxOperations = 32 << 20, 1024
	// snapshotEvery and catchUpEntries count changes, which etcd keeps in memory until the next snapshot: etcd's
	// defaults of 10,000 and 5,000 are 180 MB for an interface with 50 groups, and with 1,000 and 500 changes of an interface of a megabyte were 836 MB.
	snapshotEvery, catchUpEntries = 100, 50
	// heartbeat and election are in ms: a member that hangs is detected within 0.7 to 1.4 s. The new etcd
	// leader then extends all leases by another election timeout (lessor.Promote), so that this time
	// counts twice until the controllers have a new leader, in addition to the lease's 3 s. With 1,000
	// that took up to 6.3 s. A shared disk may stall for up to 0.3 s.
	heartbeat, election = 100, 700
	// commitEvery is how long a change may be only in etcd's log before etcd commits it to its database
	// file. Each commit syncs the disk twice and blocks reads meanwhile, with etcd's default of 100 ms for
	// nearly every change. The quota applies to the file, so a store with a small quota, which the changes
	// of one second may fill, keeps etcd's default.
	commitEvery = time.Second
)

// Member is the configuration of one etcd member.
type Member struct {
	// Name is a key of Peers, which maps the members' names to their host names or addresses.
	Name  string            `json:"name"`
	Peers map[string]string `json:"peers"`
	// Dir contains the data in "data" and the certificates in "tls".
	Dir string `json:"dir"`
	// ClientPort is the port for controllers, PeerPort that for other members, both the same on all members.
	ClientPort int `json:"client_port"`
	PeerPort   int `json:"peer_port"`
	// Quota is the size limit in bytes; 0 is 4 GiB.
	Quota int64 `json:"quota,omitempty"`
}

// URLs returns the client URLs of all members.
func (m Member) URLs() (urls []string) {
	for _, name := range m.names() {
		urls = append(urls, address(m.Peers[name], m.ClientPort))
	}
	return urls
}

// URL returns the client URL of this member, for its own controller. If the member is unreachable or
// hangs, other controllers are then not affected. A client of all members detects a failed one only by
// a timeout, which took 10 s and more.
func (m Member) URL() string { return address(m.Peers[m.Name], m.ClientPort) }

// PeerURL returns the URL of a member for other members.
func (m Member) PeerURL(name string) string { return address(m.Peers[name], m.PeerPort) }

func (m Member) names() (names []string) {
	for name := range m.Peers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func address(host string, port int) string {
	return "https://" + net.JoinHostPort(host, fmt.Sprint(port))
}

// file returns the path of a file in Dir/tls.
func (m Member) file(name string) string { return filepath.Join(m.Dir, "tls", name) }

// DataDir returns etcd's data directory.
func (m Member) DataDir() string { return filepath.Join(m.Dir, "data") }

// ErrDataLost means that the data of a member that has run is not there.
var ErrDataLost = errors.New("the data of the store is missing, although this controller has run before")

// dataMark is a file in Dir of a member that has data.
const dataMark = "has-data"

// MarkData notes that the member has data.
func (m Member) MarkData() error {
	mark := filepath.Join(m.Dir, dataMark)
	if _, err := os.Stat(mark); err == nil {
		return nil
	}
	return write(mark, nil)
}

// CheckData returns ErrDataLost if the member had data and has none. It would begin a new service, which no host and no client of the former one knows.
func (m Member) CheckData() error {
	if _, err := os.Stat(filepath.Join(m.Dir, dataMark)); err != nil {
		return nil
	}
	if _, err := os.Stat(m.DataDir()); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s: %w: restore a backup with \"headgate controller restore\", or remove %s to begin a new service", m.DataDir(), ErrDataLost, m.Dir)
	}
	return nil
}

// config returns the configuration of the embedded etcd.
func (m Member) config() (*embed.Config, error) {
	c := embed.NewConfig()
	c.Name, c.Dir = m.Name, m.DataDir()
	own := func(port int) ([]url.URL, error) {
		u, err := url.Parse(address(m.Peers[m.Name], port))
		if err != nil {
			return nil, fmt.Errorf("%q is not a valid member address: %w", m.Peers[m.Name], err)
		}
		return []url.URL{*u}, nil
	}
	peer, err := own(m.PeerPort)
	if err != nil {
		return nil, err
	}
	client, err := own(m.ClientPort)
	if err != nil {
		return nil, err
	}
	c.ListenPeerUrls, c.AdvertisePeerUrls = peer, peer
	c.ListenClientUrls, c.AdvertiseClientUrls = client, client
	c.InitialCluster, c.InitialClusterToken = m.cluster(), clusterToken
	if m.joining() {
		c.ClusterState = embed.ClusterStateFlagExisting
	}
	tls := transport.TLSInfo{
		CertFile: m.file("member.pem"), KeyFile: m.file("member.key"), TrustedCAFile: m.file("authority.pem"), ClientCertAuth: true,
	}
	c.ClientTLSInfo, c.PeerTLSInfo = tls, tls
	// A certificate of this authority identifies a member. Its source address may differ from the
	// address on which it listens.
	c.PeerTLSInfo.SkipClientSANVerify = true
	c.TickMs, c.ElectionMs = heartbeat, election
	c.SnapshotCount, c.SnapshotCatchUpEntries = snapshotEvery, catchUpEntries
	c.QuotaBackendBytes, c.MaxRequestBytes, c.MaxTxnOps = cmp.Or(m.Quota, quota), maxRequest, maxOperations
	if m.Quota == 0 {
		c.BackendBatchInterval = commitEvery
	}
	c.LogLevel, c.Logger, c.LogOutputs = "warn", "zap", []string{"stderr"}
	return c, nil
}

const clusterToken = "headgate"

// cluster returns the members in etcd's initial-cluster format.
func (m Member) cluster() string {
	var members []string
	for _, name := range m.names() {
		members = append(members, name+"="+m.PeerURL(name))
	}
	return strings.Join(members, ",")
}

// memberFile is the member's configuration in Dir, which the child reads.
const memberFile = "member.json"

// Read returns the configuration with which the member in a directory last ran.
func Read(dir string) (m Member, err error) {
	m, err = read(filepath.Join(dir, memberFile))
	m.Dir = dir // the directory may have been moved
	return m, err
}

func read(file string) (m Member, err error) {
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	return m, err
}
