package config

import (
	"fmt"
	"slices"
	"strings"
)

// aliases maps names that other tools use, or that users guess, to the keys, of which each document has one.
var aliases = map[string]string{
	"device": "dev", "interface": "dev", "iface": "dev", "nic": "dev",
	"egress": "out", "tx": "out", "upload": "out", "ingress": "in", "rx": "in", "download": "in",
	"bandwidth": "limit rate", "speed": "limit", "total": "limit",
	"min": "guarantee", "minimum": "guarantee", "rate": "guarantee", "share": "guarantee",
	"max": "ceiling", "maximum": "ceiling", "ceil": "ceiling",
	"prio": "priority", "classes": "groups", "children": "groups", "rules": "match", "selectors": "match",
	"protocol": "proto", "source": "src from", "saddr": "src", "destination": "dst to", "daddr": "dst", "dest": "dst to",
	"srcport": "sport", "source_port": "sport", "dstport": "dport", "destination_port": "dport", "fwmark": "mark", "tos": "dscp", "vlan_id": "vlan",
	"mac": "smac", "ether": "smac", "srcmac": "smac", "src_mac": "smac", "8021p": "pcp", "cos": "pcp", "qos": "pcp class", "except": "not", "exclude": "not", "unless": "not",
	"dpid": "id", "datapath_id": "id", "datapath-id": "id", "ip": "addresses", "ips": "addresses", "metric": "cost", "port": "at dport",
	"reverse": "back", "duration": "for", "deadline": "until", "end": "until", "begin": "start", "size": "volume",
	"borrow": "spare", "lending": "spare", "algorithm": "engine",
}

// unknown returns the message for an unknown key, and the key that was probably meant, if that
// is clear.
func unknown(key, what string, fields []field) (message, meant string) {
	var names []string
	for _, f := range fields {
		names = append(names, f.name)
	}
	if meant = nearest(key, names); meant != "" {
		return fmt.Sprintf("unknown key in %s: did you mean %s?", what, meant), meant
	}
	return fmt.Sprintf("unknown key in %s: write one of %s", what, keys(fields)), ""
}

// nearest returns the name that was probably meant by word, or "" if that is not clear: the key
// for another tool's name, or a name that differs by at most a third of its letters.
func nearest(word string, names []string) string {
	for _, name := range names {
		if slices.Contains(strings.Fields(aliases[word]), name) {
			return name
		}
	}
	return Similar(word, names)
}

// Similar returns the name that was probably meant by word, one that differs by at most a third of its letters, or "" if
// there is none.
func Similar(word string, names []string) string {
	best, least := "", 3
	for _, name := range names {
		if n := distance(word, name); n < least && 3*n <= len(name)+1 {
			best, least = name, n
		}
	}
	return best
}

// distance returns the optimal string alignment distance: the number of letters to insert,
// delete, replace or swap with their neighbour to get from a to b. Long words are never treated
// as misspelt short ones.
func distance(a, b string) int {
	if len(a) > 32 || len(b) > 32 {
		return len(a) + len(b)
	}
	var d [33][33]int
	for i := range len(a) + 1 {
		for j := range len(b) + 1 {
			switch {
			case i == 0 || j == 0:
				d[i][j] = i + j
				continue
			case a[i-1] == b[j-1]:
				d[i][j] = d[i-1][j-1]
			default:
				d[i][j] = 1 + min(d[i-1][j-1], d[i-1][j], d[i][j-1])
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], 1+d[i-2][j-2])
			}
		}
	}
	return d[len(a)][len(b)]
}
