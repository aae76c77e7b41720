package ovsdb

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"reflect"
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
		for _, v := range []any{new(UUID), new(Set[string]), new(Set[int64]), new(Set[bool]), new(Set[UUID]), new(Map[string]), new(Map[UUID])} {
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

// FuzzUpdate: no update panics, and what a snapshot has was in the rows.
func FuzzUpdate(f *testing.F) {
	requested := allColumns()
	f.Add([]byte(`{}`))
	f.Add([]byte(smallUpdate))
	f.Add([]byte(`{"Bridge":{"` + someUUID + `":{"old":{}}}}`))
	f.Add([]byte(`{"Nope":{}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		state := tables{}
		if state.apply(text, requested) != nil {
			return
		}
		s, err := state.snapshot()
		if err != nil {
			return
		}
		if len(s.Bridges) > len(state["Bridge"]) || len(s.Bridges) != len(state.root().bridges) {
			t.Errorf("%d bridges of %d rows", len(s.Bridges), len(state["Bridge"]))
		}
		if _, err := (BridgeConfig{Name: "br0", FailMode: Secure, Controllers: []string{"tcp:192.0.2.1"}}).operations(state); err != nil {
			t.Log(err)
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
		s := newSession(ours, "fake", 1<<16, false)
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
		<-s.Done()
		s.Close()
	})
}
