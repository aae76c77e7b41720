package ovsdb

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"
)

// FuzzValues: a decoder of a value never panics, and what it accepts is written and read as the same value.
func FuzzValues(f *testing.F) {
	for _, seed := range []string{
		`"a"`, `7`, `true`, `["uuid","` + someUUID + `"]`, `["set",[]]`, `["set",["a","b"]]`, `["set",[["uuid","` + someUUID + `"]]]`,
		`["map",[["a","b"]]]`, `["map",[["a",["uuid","` + someUUID + `"]]]]`, `["named-uuid","x"]`, `null`, `["set",null]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, v := range []any{new(uuid), new(setOf[string]), new(setOf[int64]), new(setOf[bool]), new(setOf[uuid]), new(mapOf[string]), new(mapOf[uuid])} {
			if json.Unmarshal(text, v) != nil {
				continue
			}
			written, err := json.Marshal(v)
			if err != nil {
				t.Fatalf("%s was read as %#v, which cannot be written: %v", text, v, err)
			}
			again := reflect.New(reflect.TypeOf(v).Elem())
			if err := json.Unmarshal(written, again.Interface()); err != nil {
				t.Fatalf("%s was written as %s, which is refused: %v", text, written, err)
			}
			if !reflect.DeepEqual(again.Interface(), v) {
				t.Fatalf("%s was read as %#v and written as %s, which is %#v", text, v, written, again.Interface())
			}
		}
	})
}

// FuzzState: no answer of a server to the reading of all tables panics. A snapshot has what was in the rows, and the
// operations of Connect and Disconnect can be sent.
func FuzzState(f *testing.F) {
	f.Add([]byte(`[]`))
	f.Add([]byte(`[{"error":"resources exhausted"}]`))
	f.Add([]byte(smallState))
	f.Add([]byte(strings.Replace(smallState, `"external_ids":["map",[]],"stp`, `"external_ids":["map",[["headgate-before","{\"rows\":[null,{\"target\":1}],\"settings\":null}"]]],"stp`, 1)))
	// With a controller, which has most of the columns that are kept for Disconnect.
	f.Add([]byte(strings.Replace(strings.Replace(smallState, `"controller":["set",[]]`, `"controller":["uuid","`+someUUID+`"]`, 1), `{"rows":[]}`,
		`{"rows":[{"_uuid":["uuid","`+someUUID+`"],"target":"tcp:192.0.2.1:6653","is_connected":true,"type":["set",[]],"role":"master",
		"connection_mode":"in-band","max_backoff":2000,"status":["map",[["last_error","x"]]],"external_ids":["map",[]],"inactivity_probe":["set",[]],
		"enable_async_messages":false,"controller_queue_size":["set",[]],"controller_rate_limit":["set",[]],"controller_burst_limit":["set",[]],
		"local_ip":["set",[]],"local_netmask":["set",[]],"local_gateway":["set",[]],"other_config":["map",[["dscp","3"]]]}]}`, 1)))
	f.Fuzz(func(t *testing.T, text []byte) {
		state, err := tablesOf(text)
		if err != nil {
			return
		}
		s, err := state.snapshot()
		if err != nil {
			return
		}
		if len(s.Bridges) > len(state["Bridge"]) || len(s.Bridges) != len(state.root().bridges) {
			t.Errorf("%d bridges of %d rows", len(s.Bridges), len(state["Bridge"]))
		}
		connect := ConnectConfig{Bridges: []string{"br0"}, Controllers: []string{"tcp:192.0.2.1:6653"}, Replace: true}
		for what, plan := range map[string]func() (*plan, error){
			"Connect":    func() (*plan, error) { return connect.plan(state) },
			"Disconnect": func() (*plan, error) { return disconnect(state, connect.Bridges) },
		} {
			p, err := plan()
			if err != nil {
				continue // it is refused, with a reason
			}
			if _, err := json.Marshal(p.operations); err != nil {
				t.Errorf("the operations of %s cannot be sent: %v", what, err)
			}
			if len(p.changes) > 0 && len(p.operations) == 0 {
				t.Errorf("%s has the changes %v and no operations", what, p.changes)
			}
		}
	})
}

// FuzzServer: whatever bytes a server sends, a call and the session end.
func FuzzServer(f *testing.F) {
	f.Add([]byte(`{"id":1,"result":[],"error":null}`))
	f.Add([]byte(`{"id":1,"result":null,"error":{"error":"x"}}{"id":1}`))
	f.Add([]byte(`{"method":"echo","params":[],"id":"echo"} {"method":"update","params":[],"id":null}`))
	f.Add([]byte(`{"id":1,"result":[{"rows":[]},{"error":"timed out"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		ours, theirs := net.Pipe()
		s := newSession(ours, "fake", 1<<16)
		go io.Copy(io.Discard, theirs)
		go func() {
			theirs.Write(text)
			theirs.Close()
		}()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		results, err := s.transact(ctx, operation{"op": "select", "table": "Bridge"})
		if err == nil && len(results) != 1 {
			t.Errorf("%d results of one operation", len(results))
		}
		if ctx.Err() != nil {
			t.Error("the call did not end with the connection")
		}
		<-s.done
		s.Close()
	})
}
