package ovsdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// serverError is an error that the server reports: for a request (RFC 7047, section 3.1, <error>), or for an operation of a
// transaction (section 4.1.3).
type serverError struct {
	operation string // such as "insert into Bridge", "commit" for the whole transaction, "" for another request
	code      string // such as constraintViolation: the error member of <error>
	details   string // a sentence of the server, often ""
}

// Codes of errors (RFC 7047, sections 4.1.3 and 5.2). The server has more.
const (
	constraintViolation  = "constraint violation"
	referentialIntegrity = "referential integrity violation"
	timedOut             = "timed out" // a wait operation: a row is not as expected
)

func (e *serverError) Error() string {
	text := e.code
	if e.operation != "" {
		text = e.operation + ": " + text
	}
	if e.details != "" {
		text += ": " + e.details
	}
	return text
}

// decodeError decodes an <error>. An error of JSON-RPC itself is a string, such as "unknown method".
func decodeError(operation string, text json.RawMessage) *serverError {
	e := &serverError{operation: operation}
	if json.Unmarshal(text, &e.code) == nil {
		return e
	}
	var object struct{ Error, Details string }
	if json.Unmarshal(text, &object) != nil || object.Error == "" {
		return &serverError{operation: operation, code: "unknown error", details: fmt.Sprintf("%.200s", text)}
	}
	e.code, e.details = object.Error, object.Details
	return e
}

// operation is an operation of a transaction (RFC 7047, section 5.2).
type operation map[string]any

// everyRow is a <where> that matches all rows.
var everyRow = []any{}

// whereRow is a <where> that matches one row.
func whereRow(id uuid) any { return []any{[]any{"_uuid", "==", id}} }

// mutate changes a column of some rows (RFC 7047, sections 5.1 and 5.2.4).
func mutate(table string, where any, column, mutator string, value any) operation {
	return operation{"op": "mutate", "table": table, "where": where, "mutations": []any{[]any{column, mutator, value}}}
}

// insert inserts a row, which the transaction's other operations refer to by its name.
func insert(table string, name named, row map[string]any) operation {
	return operation{"op": "insert", "table": table, "row": row, "uuid-name": string(name)}
}

// update writes columns of one row, and nothing if there are none.
func update(table string, id uuid, columns map[string]any) []operation {
	if len(columns) == 0 {
		return nil
	}
	return []operation{{"op": "update", "table": table, "where": whereRow(id), "row": columns}}
}

// setKeys sets keys of a map and leaves its other keys. An insert alone would leave the keys that exist.
func setKeys(table string, id uuid, column string, values map[string]string) []operation {
	if len(values) == 0 {
		return nil
	}
	keys := setOf[string](slices.Sorted(maps.Keys(values)))
	return []operation{
		mutate(table, whereRow(id), column, "delete", keys),
		mutate(table, whereRow(id), column, "insert", mapOf[string](values)),
	}
}

func (o operation) String() string {
	switch o["op"] {
	case "insert":
		return fmt.Sprintf("insert into %v", o["table"])
	case "comment":
		return "comment"
	}
	return fmt.Sprintf("%v %v", o["op"], o["table"])
}

// result is the result of an operation: rows for a select.
type result struct {
	Rows  []map[string]json.RawMessage `json:"rows"`
	Error json.RawMessage              `json:"error"`
}

// transact executes operations in one transaction (RFC 7047, section 4.1.3). It returns one result for each
// operation. If one fails, none has an effect, and the error is a *serverError.
func (s *Session) transact(ctx context.Context, operations ...operation) ([]result, error) {
	params := []any{database}
	for _, o := range operations {
		params = append(params, o)
	}
	var replies []json.RawMessage
	if err := s.call(ctx, "transact", &replies, params...); err != nil {
		return nil, err
	}
	results, err := decodeResults(operations, replies)
	return results, s.name("transact", err)
}

func decodeResults(operations []operation, replies []json.RawMessage) ([]result, error) {
	results := make([]result, 0, len(replies))
	for i, text := range replies {
		var r result
		if err := json.Unmarshal(text, &r); err != nil {
			return nil, fmt.Errorf("the server sent a result of another form: %w", err)
		}
		if !isNull(r.Error) {
			failed := "commit" // has a result after those of the operations
			if i < len(operations) {
				failed = operations[i].String()
			}
			return nil, decodeError(failed, text)
		}
		results = append(results, r)
	}
	if len(results) != len(operations) {
		return nil, fmt.Errorf("the server sent %d results for %d operations", len(results), len(operations))
	}
	return results, nil
}

// errorCode returns the code of a *serverError, "" for any other error.
func errorCode(err error) string {
	var e *serverError
	if errors.As(err, &e) {
		return e.code
	}
	return ""
}
