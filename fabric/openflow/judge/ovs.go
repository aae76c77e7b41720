package judge

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"headgate.dev/headgate/fabric/openflow"
)

// NotByOVS are kinds of messages that ovs-ofctl 3.1 does not print, with what it prints instead.
var NotByOVS = map[string]string{
	"experimenter":         "OFPBRC_BAD_VENDOR: no experimenter but those that it knows",
	"experimenter request": "OFPBRC_BAD_VENDOR: no experimenter but those that it knows",
	"experimenter reply":   "OFPBRC_BAD_VENDOR: no experimenter but those that it knows",
	"unknown":              "OFPBRC_BAD_TYPE: no type but those of OpenFlow 1.3",
	"unknown request":      "OFPBRC_BAD_STAT: no multipart type but those of OpenFlow 1.3",
	"unknown reply":        "OFPBRC_BAD_STAT: no multipart type but those of OpenFlow 1.3",
}

// SameToOVS reports whether ovs-ofctl has printed of a message of a kind what was meant.
func SameToOVS(kind string, m openflow.Message, printed string) bool {
	want := Text(m)
	for _, u := range unlike {
		if u.kind == "" || u.kind == kind {
			want, printed = u.ours.ReplaceAllString(want, ""), u.theirs.ReplaceAllString(printed, "")
		}
	}
	return slices.Equal(words(printed), words(want))
}

// Names reports whether a text of ovs-ofctl has a word.
func Names(printed, word string) bool { return slices.Contains(words(printed), word) }

// Text is what ovs-ofctl prints of a message.
func Text(m openflow.Message) string {
	switch m := m.(type) {
	case *openflow.EchoRequest:
		return m.String() + fmt.Sprintf(" %x", m.Data)
	case *openflow.EchoReply:
		return m.String() + fmt.Sprintf(" %x", m.Data)
	case *openflow.PacketIn:
		return m.String() + frame(m.Data)
	case *openflow.PacketOut:
		return m.String() + frame(m.Data)
	case *openflow.MultipartRequest:
		if f, ok := m.Body.(*openflow.TableFeaturesList); ok {
			return "table-features request " + tableText(f.Tables[0])
		}
	case *openflow.MultipartReply:
		switch b := m.Body.(type) {
		case *openflow.TableFeaturesList:
			return "table-features reply " + tableText(b.Tables[0])
		case *openflow.TableStatsReply:
			return tableStatsText(b.Tables)
		}
	}
	return m.String()
}

func frame(d []byte) string {
	if len(d) < 14 {
		return ""
	}
	return fmt.Sprintf(" vlan_tci=0x0000 dl_src=%s dl_dst=%s dl_type=0x%x %x", openflow.MAC(d[6:]), openflow.MAC(d), d[12:14], d)
}

// unlike has what ovs-ofctl 3.1 prints otherwise than we do, and why. It is replaced in the text of messages of a
// kind, or of each.
var unlike = []struct {
	kind         string
	ours, theirs *regexp.Regexp // removed from our text, and from that of ovs-ofctl
	why          string
}{
	{"", expr(` out_group[:=]\w+`), expr(``), "it does not print groups of requests"},
	{"flow request", expr(` cookie=\w+/\w+`), expr(``), "it does not print cookies of requests"},
	{"aggregate request", expr(` cookie=\w+/\w+`), expr(``), "it does not print cookies of requests"},
	{"group-desc request", expr(``), expr(`group_id=ALL`), "OpenFlow 1.5 has a group in the request"},
	{"port-desc request", expr(``), expr(`port=ANY`), "OpenFlow 1.5 has a port in the request"},
	{"get-async-reply", expr(``), expr(`(ROLE_STATUS|TABLE_STATUS|REQUESTFORWARD): \(off\)`), "OpenFlow 1.4 has more messages"},
	{"set-async", expr(``), expr(`(ROLE_STATUS|TABLE_STATUS|REQUESTFORWARD): \(off\)`), "OpenFlow 1.4 has more messages"},
}

// expr compiles a regular expression; the empty one matches nothing.
func expr(s string) *regexp.Regexp {
	if s == "" {
		s = `[^\s\S]`
	}
	return regexp.MustCompile(s)
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

// OVS returns the text that ovs-ofctl prints for each message.
func OVS(ctx context.Context, messages []openflow.Message) ([]string, error) {
	var wire []byte
	for i, m := range messages {
		var err error
		if wire, err = openflow.Append(wire, uint32(i), m); err != nil {
			return nil, err
		}
	}
	c := exec.CommandContext(ctx, "ovs-ofctl", "-m", "ofp-parse", "-")
	c.Stdin = bytes.NewReader(wire)
	var problems bytes.Buffer
	c.Stderr = &problems
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("ovs-ofctl ofp-parse: %w: %s", err, &problems)
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
		return nil, fmt.Errorf("ovs-ofctl prints %d messages, want %d", len(all), len(messages))
	}
	all[len(all)-1] = string(out[at:])
	return all, nil
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
func tableText(f openflow.TableFeatures) string {
	var b strings.Builder
	fmt.Fprintf(&b, "table %d (%q): ", f.Table, f.Name)
	if f.MetadataMatch != 0 || f.MetadataWrite != 0 {
		fmt.Fprintf(&b, "metadata: match=%s write=%s ", hexText(f.MetadataMatch), hexText(f.MetadataWrite))
	}
	if f.MaxEntries != 0 {
		fmt.Fprintf(&b, "max_entries=%d ", f.MaxEntries)
	}
	properties := map[openflow.TablePropertyType]openflow.TableProperty{}
	for _, p := range f.Properties {
		properties[p.Kind] = p
	}
	for miss, title := range []string{"instructions (other than table miss):", "instructions (table miss):"} {
		miss := openflow.TablePropertyType(miss)
		b.WriteString(title + " ")
		if next := properties[openflow.TableNextTables+miss].Tables; next != nil {
			b.WriteString("next tables: " + ranges(next) + " ")
		}
		if len(properties[openflow.TableInstructions+miss].Instructions) > 0 {
			b.WriteString("instructions: ")
		}
		for _, i := range properties[openflow.TableInstructions+miss].Instructions {
			b.WriteString(i.Type.String() + " ")
		}
		for _, set := range []struct {
			title           string
			actions, fields openflow.TablePropertyType
		}{{"Write-Actions", openflow.TableWriteActions, openflow.TableWriteSetField}, {"Apply-Actions", openflow.TableApplyActions, openflow.TableApplySetField}} {
			b.WriteString(set.title + " features: ")
			if len(properties[set.actions+miss].Actions) > 0 {
				b.WriteString("actions: ")
			}
			for _, a := range properties[set.actions+miss].Actions {
				b.WriteString(a.Type.String() + " ")
			}
			if len(properties[set.fields+miss].Fields) > 0 {
				b.WriteString("supported on Set-Field: ")
			}
			for _, f := range properties[set.fields+miss].Fields {
				b.WriteString(setName(f.ID) + " ")
			}
		}
	}
	b.WriteString("matching: ")
	var kinds [3]string
	for _, m := range properties[openflow.TableMatch].Fields {
		kind := 2
		switch {
		case m.Masked:
			kind = 0
		case slices.Contains(properties[openflow.TableWildcards].Fields, m):
			kind = 1
		}
		kinds[kind] += setName(m.ID) + " "
	}
	for i, title := range []string{"arbitrary mask: ", "exact match or wildcard: ", "must exact match: "} {
		if kinds[i] != "" {
			b.WriteString(title + kinds[i])
		}
	}
	return b.String()
}

// tableStatsText is what ovs-ofctl prints of the counters of tables: of those that are like the table before, that.
func tableStatsText(tables []openflow.TableStats) string {
	text := "table reply"
	for i, t := range tables {
		counters := fmt.Sprintf(" active=%d, lookup=%d, matched=%d", t.Active, t.Lookups, t.Matched)
		if i > 0 {
			if before := tables[i-1]; t.Active == before.Active && t.Lookups == before.Lookups && t.Matched == before.Matched {
				counters = " ditto"
			}
		}
		text += fmt.Sprintf("\ntable %d:%s", uint8(t.Table), counters)
	}
	return text
}

// ranges is such as "1-3,7".
func ranges(tables []openflow.TableID) string {
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

// hexText is "0" or such as "0x1f".
func hexText(v uint64) string {
	if v == 0 {
		return "0"
	}
	return fmt.Sprintf("%#x", v)
}

// setName is the name of a field in the text of set_field.
func setName(id openflow.FieldID) string {
	text := fmt.Sprint(openflow.SetField{Field: newField(id, make([]byte, octetsOf(id)), nil)})
	return text[strings.LastIndex(text, ">")+1:]
}
