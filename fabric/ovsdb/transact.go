package ovsdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Error is an error that the server reports: for a request (RFC 7047, section 3.1, <error>), or for an operation of a
// transaction (section 4.1.3).
type Error struct {
	Operation string // such as "insert into Bridge", "commit" for the whole transaction, "" for another request
	Code      string // such as ConstraintViolation: the error member of <error>
	Details   string // a sentence of the server, often ""
}

// Codes of errors (RFC 7047, sections 4.1.3 and 5.2). The server has more.
const (
	ConstraintViolation  = "constraint violation"
	ReferentialIntegrity = "referential integrity violation"
	TimedOut             = "timed out" // a wait operation: a row is not as expected
)

func (e *Error) Error() string {
	text := e.Code
	if e.Operation != "" {
		text = e.Operation + ": " + text
	}
	if e.Details != "" {
		text += ": " + e.Details
	}
	return text
}

// decodeError decodes an <error>. An error of JSON-RPC itself is a string, such as "unknown method".
func decodeError(operation string, text json.RawMessage) *Error {
	e := &Error{Operation: operation}
	if json.Unmarshal(text, &e.Code) == nil {
		return e
	}
	var object struct{ Error, Details string }
	if json.Unmarshal(text, &object) != nil || object.Error == "" {
		return &Error{Operation: operation, Code: "unknown error", Details: fmt.Sprintf("%.200s", text)}
	}
	e.Code, e.Details = object.Error, object.Details
	return e
}

// operation is an operation of a transaction (RFC 7047, section 5.2).
type operation map[string]any

// everyRow is a <where> that matches all rows.
var everyRow = []any{}

// whereRow is a <where> that matches one row, by its UUID or Named.
func whereRow(id any) any { return []any{[]any{"_uuid", "==", id}} }

// mutate changes a column of some rows (RFC 7047, sections 5.1 and 5.2.4).
func mutate(table string, where any, column, mutator string, value any) operation {
	return operation{"op": "mutate", "table": table, "where": where, "mutations": []any{[]any{column, mutator, value}}}
}

// insert inserts a row, which the transaction's other operations refer to by its name.
func insert(table string, name Named, row map[string]any) operation {
	o := operation{"op": "insert", "table": table, "row": row}
	if name != "" {
		o["uuid-name"] = string(name)
	}
	return o
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
// operation. If one fails, none has an effect, and the error is an *Error.
func (s *Session) transact(ctx context.Context, operations ...operation) ([]result, error) {
	params := []any{database}
	for _, o := range operations {
		params = append(params, o)
	}
	var replies []json.RawMessage
	if err := s.Call(ctx, "transact", &replies, params...); err != nil {
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

// errorCode returns the code of an *Error, "" for any other error.
func errorCode(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}
