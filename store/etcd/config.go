package etcd

import (
	"cmp"
	"encoding/json"
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

// Ours.
const (
	// quota is the most that the store keeps: 16,000 groups are 3 MB, a change of them as much
	// until it is compacted. See store.Tend.
	quota = 4 << 30
	// mostRequest and mostOperations: see package store.
	mostRequest, mostOperations = 32 << 20, 1024
	// snapshotEvery and catchUp are in changes, which the store has in memory until then: etcd's
	// own 10,000 and 5,000 are 180 MB of an interface with 50 groups.
	snapshotEvery, catchUp = 1000, 500
	// heartbeat and election, in ms: a member that stands still is noticed within 0.7 to 1.4 s.
	// Whoever leads etcd then gives all leases another election's time (lessor.Promote), so that
	// this counts twice until the controllers have a new leader, beside the 3 s of the lease. With
	// 1,000 it was up to 6.3 s. A disk that others use stands still for up to 0.3 s.
	heartbeat, election = 100, 700
	// commitEvery is how long a change may be in etcd's log alone, and not yet in its file: it waits for the
	// disk twice to write that, and answers no reads meanwhile, with its own 100 ms for nearly every change.
	// The quota is held against the file, so that one that was made small, which a second's changes may fill,
	// keeps etcd's own.
	commitEvery = time.Second
)

// Member is one member of the store.
type Member struct {
	// Name is among Peers, which have the host at which each is spoken to.
	Name  string            `json:"name"`
	Peers map[string]string `json:"peers"`
	// Dir has the data in "data" and certificates in "tls".
	Dir string `json:"dir"`
	// ClientPort is for controllers, PeerPort for other members: the same for all.
	ClientPort int `json:"client_port"`
	PeerPort   int `json:"peer_port"`
	// Quota is the most that the store keeps, in bytes; 0 is 4 GiB.
	Quota int64 `json:"quota,omitempty"`
}

// URLs are those of all members, for controllers.
func (m Member) URLs() (urls []string) {
	for _, name := range m.names() {
		urls = append(urls, address(m.Peers[name], m.ClientPort))
	}
	return urls
}

// URL is this member's, for its own controller: one that cannot be reached, or stands still, is no
// concern of the other controllers then. A client of all members is told by nothing but silence,
// which took it 10 s and more.
func (m Member) URL() string { return address(m.Peers[m.Name], m.ClientPort) }

// PeerURL is where other members speak to one.
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

// file is one of Dir/tls.
func (m Member) file(name string) string { return filepath.Join(m.Dir, "tls", name) }

// DataDir is where etcd keeps what it has.
func (m Member) DataDir() string { return filepath.Join(m.Dir, "data") }

// config is etcd's.
func (m Member) config() (*embed.Config, error) {
	c := embed.NewConfig()
	c.Name, c.Dir = m.Name, m.DataDir()
	own := func(port int) ([]url.URL, error) {
		u, err := url.Parse(address(m.Peers[m.Name], port))
		if err != nil {
			return nil, fmt.Errorf("%q is no address of a member: %w", m.Peers[m.Name], err)
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
	// Whoever has a certificate of this authority is a member. Which address it comes from may be
	// another than the one at which it is spoken to.
	c.PeerTLSInfo.SkipClientSANVerify = true
	c.TickMs, c.ElectionMs = heartbeat, election
	c.SnapshotCount, c.SnapshotCatchUpEntries = snapshotEvery, catchUp
	c.QuotaBackendBytes, c.MaxRequestBytes, c.MaxTxnOps = cmp.Or(m.Quota, quota), mostRequest, mostOperations
	if m.Quota == 0 {
		c.BackendBatchInterval = commitEvery
	}
	c.LogLevel, c.Logger, c.LogOutputs = "warn", "zap", []string{"stderr"}
	return c, nil
}

const clusterToken = "headgate"

// cluster are the members as etcd wants them said.
func (m Member) cluster() string {
	var members []string
	for _, name := range m.names() {
		members = append(members, name+"="+m.PeerURL(name))
	}
	return strings.Join(members, ",")
}

// memberFile is in Dir, for the child.
const memberFile = "member.json"

// Read is the member of a folder as it last ran.
func Read(dir string) (m Member, err error) {
	m, err = read(filepath.Join(dir, memberFile))
	m.Dir = dir // it may have been moved
	return m, err
}

func read(file string) (m Member, err error) {
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	return m, err
}
