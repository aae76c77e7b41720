package openflow

import (
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// perKind is how many messages of each kind other implementations judge.
const perKind = 100

// notByOVS are kinds of messages that ovs-ofctl 3.1 does not print, with what it prints instead.
var notByOVS = map[string]string{
	"experimenter":         "OFPBRC_BAD_VENDOR: no experimenter but those that it knows",
	"experimenter request": "OFPBRC_BAD_VENDOR: no experimenter but those that it knows",
	"experimenter reply":   "OFPBRC_BAD_VENDOR: no experimenter but those that it knows",
	"unknown":              "OFPBRC_BAD_TYPE: no type but those of OpenFlow 1.3",
	"unknown request":      "OFPBRC_BAD_STAT: no multipart type but those of OpenFlow 1.3",
	"unknown reply":        "OFPBRC_BAD_STAT: no multipart type but those of OpenFlow 1.3",
}

// ovs-ofctl prints of each message what was meant.
func TestOpenVSwitch(t *testing.T) {
	var names []string
	var all []Message
	for _, k := range kinds {
		if notByOVS[k.name] != "" {
			continue
		}
		for _, m := range corpus(k.draw, perKind, false) {
			names, all = append(names, k.name), append(all, m)
		}
	}
	for i, got := range ofpParse(t, all) {
		want := text(all[i])
		for _, u := range unlike {
			if u.kind == "" || u.kind == names[i] {
				want = regexp.MustCompile(u.ours).ReplaceAllString(want, "")
				got = regexp.MustCompile(u.theirs).ReplaceAllString(got, "")
			}
		}
		if !slices.Equal(words(got), words(want)) {
			t.Errorf("%s %d: ovs-ofctl prints\n%s\nwant\n%s", names[i], i, got, want)
		}
	}
	t.Logf("%d messages of %d kinds", len(all), len(kinds)-len(notByOVS))
}

// ovs-ofctl gives each error the same name.
func TestOpenVSwitchErrors(t *testing.T) {
	var all []Message
	for kind, codes := range codeNames {
		for code := range codes {
			all = append(all, &Error{Kind: ErrorType(kind), Code: uint16(code)})
		}
	}
	for i := range bundleCodeNames {
		all = append(all, &Error{Kind: ErrExperimenter, Experimenter: ONF, Code: firstBundleError + uint16(i)})
	}
	for i, got := range ofpParse(t, all) {
		if want := all[i].String(); !slices.Contains(words(got), all[i].(*Error).Name()) {
			t.Errorf("ovs-ofctl prints\n%s\nwant\n%s", got, want)
		}
	}
}

// Open vSwitch refuses a match without a field that another needs, as Check does.
func TestOpenVSwitchPrerequisites(t *testing.T) {
	var all []Message
	for id := FieldInPort; id < fieldEnd; id++ {
		if info := id.info(); info.needs != nil && !slices.Contains(notInOVS, id) {
			m := Match{field(id, make([]byte, info.bytes()), nil)}
			if err := m.Check(); err == nil {
				t.Errorf("%s needs nothing", id)
			}
			all = append(all, &FlowMod{Match: m, Buffer: NoBuffer, OutPort: PortAny, OutGroup: GroupAny})
		}
	}
	for i, got := range ofpParse(t, all) {
		if !strings.Contains(got, "OFPBMC_BAD_PREREQ") {
			t.Errorf("%v: ovs-ofctl prints\n%s", all[i], got)
		}
	}
}

// text is what ovs-ofctl prints of a message.
func text(m Message) string {
	switch m := m.(type) {
	case *EchoRequest:
		return m.String() + fmt.Sprintf(" %x", m.Data)
	case *EchoReply:
		return m.String() + fmt.Sprintf(" %x", m.Data)
	case *PacketIn:
		return m.String() + frame(m.Data)
	case *PacketOut:
		return m.String() + frame(m.Data)
	case *MultipartRequest:
		if f, ok := m.Body.(*TableFeaturesList); ok {
			return "table-features request " + tableText(f.Tables[0])
		}
	case *MultipartReply:
		if f, ok := m.Body.(*TableFeaturesList); ok {
			return "table-features reply " + tableText(f.Tables[0])
		}
	}
	return m.String()
}

func frame(d []byte) string {
	if len(d) < 14 {
		return ""
	}
	return fmt.Sprintf(" vlan_tci=0x0000 dl_src=%s dl_dst=%s dl_type=0x%x %x", MAC(d[6:]), MAC(d), d[12:14], d)
}

// unlike has what ovs-ofctl 3.1 prints otherwise than we do, and why. It is replaced in the text of messages of a
// kind, or of each.
var unlike = []struct {
	kind, ours, theirs string // regular expressions: removed from our text, and from that of ovs-ofctl
	why                string
}{
	{"", ` out_group[:=]\w+`, ``, "it does not print groups of requests"},
	{"flow request", ` cookie=\w+/\w+`, ``, "it does not print cookies of requests"},
	{"aggregate request", ` cookie=\w+/\w+`, ``, "it does not print cookies of requests"},
	{"group-desc request", ``, `group_id=ALL`, "OpenFlow 1.5 has a group in the request"},
	{"port-desc request", ``, `port=ANY`, "OpenFlow 1.5 has a port in the request"},
	{"get-async-reply", ``, `(ROLE_STATUS|TABLE_STATUS|REQUESTFORWARD): \(off\)`, "OpenFlow 1.4 has more messages"},
	{"set-async", ``, `(ROLE_STATUS|TABLE_STATUS|REQUESTFORWARD): \(off\)`, "OpenFlow 1.4 has more messages"},
}

// alias has the words of ovs-ofctl 3.1 for which we have others.
var alias = map[string]string{
	"OFPBRC_BAD_STAT":        "OFPBRC_BAD_MULTIPART", // the names of OpenFlow 1.0
	"OFPBRC_BAD_VENDOR":      "OFPBRC_BAD_EXPERIMENTER",
	"OFPBRC_BAD_SUBTYPE":     "OFPBRC_BAD_EXP_TYPE",
	"OFPBAC_BAD_VENDOR":      "OFPBAC_BAD_EXPERIMENTER",
	"OFPBAC_BAD_VENDOR_TYPE": "OFPBAC_BAD_EXP_TYPE",
	"OFPBPC_BAD_TYPE":        "OFPTFFC_BAD_TYPE", // the names of OpenFlow 1.4
	"OFPBPC_BAD_LEN":         "OFPTFFC_BAD_LEN",
	"OFPBPC_BAD_VALUE":       "OFPTFFC_BAD_ARGUMENT",
	"OFPBRC_IS_SECONDARY":    "OFPBRC_IS_SLAVE", // OpenFlow 1.3 has master and slave
	"role=primary":           "role=master",
	"role=secondary":         "role=slave",
	"primary:":               "master:",
	"secondary:":             "slave:",
	"strip_vlan":             "pop_vlan", // in lists of actions only
}

// header begins the text of a message.
var header = regexp.MustCompile(`(?m)^(OFP[A-Z]*|ONF[A-Z]*)_(\w+)( request| reply)?( \(OF[^)]*\))? \(xid=0x([0-9a-f]+)\):`)

// ofpParse returns the text that ovs-ofctl prints for each message.
func ofpParse(t *testing.T, messages []Message) []string {
	t.Helper()
	if testing.Short() {
		t.Skip("runs ovs-ofctl")
	}
	var wire []byte
	for i, m := range messages {
		var err error
		if wire, err = Append(wire, uint32(i), m); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "messages")
	if err := os.WriteFile(file, wire, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("ovs-ofctl", "-m", "ofp-parse", file).Output()
	if err != nil {
		t.Fatalf("ovs-ofctl ofp-parse: %v\n%s", err, out)
	}
	var all []string
	at := 0
	for _, m := range header.FindAllSubmatchIndex(out, -1) {
		if xid, _ := strconv.ParseUint(string(out[m[10]:m[11]]), 16, 32); xid == uint64(len(all)) { // not of a message in it
			if len(all) > 0 {
				all[len(all)-1] = string(out[at:m[0]])
			}
			all, at = append(all, ""), m[0]
		}
	}
	if len(all) != len(messages) {
		t.Fatalf("ovs-ofctl prints %d messages, want %d", len(all), len(messages))
	}
	all[len(all)-1] = string(out[at:])
	return all
}

// ovsNames are the names of kinds of messages for which ovs-ofctl has others.
var ovsNames = strings.NewReplacer("bundle-add-message", "bundle-add", "port request", "port-stats request", "port reply", "port-stats reply")

var dump = regexp.MustCompile(`(?m)^[0-9a-f]{8}  ([0-9a-f]{2}[0-9a-f -]{0,46})( *\|.*\|)?$\n?`)

// braces is such as "ip_{src,dst}" for "ip_src ip_dst".
var braces = regexp.MustCompile(`(\w+)\{(\S*)\}`)

// words are the words of a text in a canonical order: that of fields in a match is not that of ovs-ofctl, nor is that of
// options.
func words(s string) []string {
	s = header.ReplaceAllStringFunc(s, func(h string) string {
		m := header.FindStringSubmatch(h)
		return ovsNames.Replace(strings.ToLower(strings.ReplaceAll(m[2], "_", "-"))+m[3]) + " "
	})
	s = strings.ReplaceAll(s, "table_id: ALL_TABLES", "table_id=ALL_TABLES")
	s = braces.ReplaceAllStringFunc(s, func(b string) string {
		m := braces.FindStringSubmatch(b)
		return m[1] + strings.ReplaceAll(m[2], ",", " "+m[1])
	})
	s = dump.ReplaceAllStringFunc(s, func(d string) string {
		b, err := hex.DecodeString(strings.NewReplacer(" ", "", "-", "").Replace(dump.FindStringSubmatch(d)[1]))
		if err != nil {
			return d
		}
		return fmt.Sprintf("%x", b)
	})
	all := strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" ,\n\"", r) })
	for i, w := range all {
		if a, ok := alias[w]; ok {
			all[i] = a
		}
	}
	slices.Sort(all)
	return all
}

// tableText is what ovs-ofctl prints of the features of a table with all properties.
func tableText(f TableFeatures) string {
	var b strings.Builder
	fmt.Fprintf(&b, "table %d (%q): ", f.Table, f.Name)
	if f.MetadataMatch != 0 || f.MetadataWrite != 0 {
		fmt.Fprintf(&b, "metadata: match=%s write=%s ", hexadecimal(f.MetadataMatch), hexadecimal(f.MetadataWrite))
	}
	if f.MaxEntries != 0 {
		fmt.Fprintf(&b, "max_entries=%d ", f.MaxEntries)
	}
	properties := map[TablePropertyType]TableProperty{}
	for _, p := range f.Properties {
		properties[p.Kind] = p
	}
	for miss, title := range []string{"instructions (other than table miss):", "instructions (table miss):"} {
		miss := TablePropertyType(miss)
		b.WriteString(title + " ")
		if next := properties[TableNextTables+miss].Tables; next != nil {
			b.WriteString("next tables: " + ranges(next) + " ")
		}
		if len(properties[TableInstructions+miss].Instructions) > 0 {
			b.WriteString("instructions: ")
		}
		for _, i := range properties[TableInstructions+miss].Instructions {
			b.WriteString(i.Type.String() + " ")
		}
		for _, set := range []struct {
			title           string
			actions, fields TablePropertyType
		}{{"Write-Actions", TableWriteActions, TableWriteSetField}, {"Apply-Actions", TableApplyActions, TableApplySetField}} {
			b.WriteString(set.title + " features: actions: ")
			for _, a := range properties[set.actions+miss].Actions {
				b.WriteString(a.Type.String() + " ")
			}
			b.WriteString("supported on Set-Field: ")
			for _, f := range properties[set.fields+miss].Fields {
				b.WriteString(f.ID.info().set + " ")
			}
		}
	}
	b.WriteString("matching: ")
	var kinds [3]string
	for _, m := range properties[TableMatch].Fields {
		kind := 2
		switch {
		case m.Masked:
			kind = 0
		case slices.Contains(properties[TableWildcards].Fields, m):
			kind = 1
		}
		kinds[kind] += m.ID.info().set + " "
	}
	for i, title := range []string{"arbitrary mask: ", "exact match or wildcard: ", "must exact match: "} {
		if kinds[i] != "" {
			b.WriteString(title + kinds[i])
		}
	}
	return b.String()
}

// ranges is such as "1-3,7".
func ranges(tables []TableID) string {
	var words []string
	for i := 0; i < len(tables); {
		last := i
		for last+1 < len(tables) && tables[last+1] == tables[last]+1 {
			last++
		}
		w := tables[i].String()
		if last > i {
			w += "-" + tables[last].String()
		}
		words = append(words, w)
		i = last + 1
	}
	return strings.Join(words, ",")
}
