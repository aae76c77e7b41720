package api

import (
	"context"
	_ "embed"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"headgate/group"
	"headgate/store"
	"headgate/unit"
)

//go:embed openapi.yaml
var specification []byte

// Specification is the API's, in OpenAPI 3.1.
func Specification() []byte { return specification }

// Ours.
const (
	// mostBody is the largest request, and largeBody the largest of those that have whole documents: an
	// interface of 16,000 groups is 3 MB.
	mostBody, largeBody = 64 << 10, 16 << 20
	// largeWithin is how long such a one may take to arrive: who sends it is known by then.
	largeWithin = time.Minute
)

// large are the operations that have whole documents.
var large = []string{"putInterface", "putGroup", "patchGroup", "putPolicy", "putCollective"}

// Server answers the API.
type Server struct {
	Store  *store.Store
	Agents Agents
	// Sign makes an agent's certificate.
	Sign func(host string, request []byte) (c Certificate, serial string, err error)
	// Version is this program's.
	Version string
	// Writable tells whether changes are taken now.
	Writable func() bool
	// Whole answers what is asked of all controllers together; nil is that this is all there is.
	Whole http.Handler
	// Burst, if set, is what a limit lets through at once where it is in force.
	Burst func(limit unit.Rate) unit.Bytes
	// Done, if set, is told of each request that is of an operation.
	Done func(operation string, status int, took time.Duration)

	spec    *openapi3.T
	mux     *http.ServeMux
	limits  limits
	door    door
	streams streams
	health  health
}

// Agents is what agents tell.
type Agents interface {
	// State is what a host's agent says of it; false while none is connected.
	State(host string) (HostState, bool)
	// Names are the alternative names of a host's devices, as far as its agent tells.
	Names(host string) group.Names
	// Rates are the newest of a host's groups.
	Rates(host string) (RateList, bool)
	// Loads are a host's directions by device, with the groups of them that are seen, nil is all, and the
	// first of those groups that are at risk; troubles are devices that are not as they are meant.
	Loads(host string, sees func(dev, direction, path string) bool) (all []Load, risks []GroupAtRisk, troubles int, connected bool)
	// Usage is what hosts have on record; missing are those that did not answer.
	Usage(ctx context.Context, hosts []string, since, until time.Time) (rows []Usage, missing []string)
	// Sets is what a host's sets of connections are doing, as far as its agent tells.
	Sets(ctx context.Context, host string) (CollectiveStateList, error)
	// Probe has a host measure: Probed is what becomes of it, also if this is an error.
	Probe(host string, id string, r ProbeRequest) error
	// Probed is how far that is.
	Probed(host, id string) (Probe, bool)
}

// Handler serves the API.
func (s *Server) Handler() (http.Handler, error) {
	spec, err := openapi3.NewLoader().LoadFromData(specification)
	if err != nil {
		return nil, err
	}
	s.spec = spec
	s.mux = http.NewServeMux()
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		problem(w, r, refuse(http.StatusNotFound, "there is nothing at %s", r.URL.Path))
	})
	out := HandlerWithOptions(s, StdHTTPServerOptions{
		BaseRouter: s.mux, Middlewares: []MiddlewareFunc{s.guard},
		ErrorHandlerFunc: func(w http.ResponseWriter, r *http.Request, err error) {
			problem(w, r, refuse(http.StatusBadRequest, "%v", err))
		},
	})
	if s.Whole == nil {
		s.Whole = out
	}
	return out, nil
}

// guard lets a request through to its handler: if it is as the specification says, and who asks
// may.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, path, _ := strings.Cut(r.Pattern, " ")
		item := s.spec.Paths.Find(path)
		if item == nil || item.GetOperation(r.Method) == nil {
			problem(w, r, refuse(http.StatusNotFound, "there is nothing at %s", r.URL.Path))
			return
		}
		operation := item.GetOperation(r.Method)
		if s.Done != nil {
			watched := &statusWriter{ResponseWriter: w, status: http.StatusOK}
			w = watched
			defer func(began time.Time) {
				s.Done(operation.OperationID, watched.status, time.Since(began))
			}(time.Now())
		}
		r, err := s.admit(w, r.WithContext(store.Once(r.Context())), path, item, operation)
		if err != nil {
			problem(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// statusWriter keeps the status that is written.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (s *Server) admit(w http.ResponseWriter, r *http.Request, path string, item *openapi3.PathItem, operation *openapi3.Operation) (*http.Request, error) {
	if operation.Security == nil || len(*operation.Security) > 0 {
		p, err := s.authenticate(r)
		if err != nil {
			return r, err
		}
		if !may(p.Role, operation.OperationID) || p.Tenant != "" && !may(store.TenantRole, operation.OperationID) {
			return r, refuse(http.StatusForbidden, "the role %s may not do that", p.Role)
		}
		if wait := s.limits.take(p, s.requests(r.Context(), p)); wait > 0 {
			return r, &Refusal{Status: http.StatusTooManyRequests, Detail: "too many requests: ask more slowly", RetryAfter: wait}
		}
		r = r.WithContext(context.WithValue(r.Context(), principalKey{}, p))
	}
	most := int64(mostBody)
	if slices.Contains(large, operation.OperationID) {
		most = largeBody
		// If it cannot be set the one that holds for all requests stays.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(largeWithin))
	}
	r.Body = http.MaxBytesReader(w, r.Body, most)
	params := map[string]string{}
	for _, p := range append(item.Parameters, operation.Parameters...) {
		if p.Value.In == "path" {
			params[p.Value.Name] = r.PathValue(p.Value.Name)
		}
	}
	err := openapi3filter.ValidateRequest(r.Context(), &openapi3filter.RequestValidationInput{
		Request: r, PathParams: params,
		Route:   &routers.Route{Spec: s.spec, Path: path, PathItem: item, Method: r.Method, Operation: operation},
		Options: &openapi3filter.Options{MultiError: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	})
	return r, invalid(err)
}

// invalid is a refusal that names what is not as the specification says.
func invalid(err error) error {
	if err == nil {
		return nil
	}
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return refuse(http.StatusRequestEntityTooLarge, "the request has more than %d bytes", large.Limit)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return refuse(http.StatusRequestTimeout, "the request did not arrive as a whole: send it faster")
	}
	out := refuse(http.StatusBadRequest, "the request is not as the API says")
	var add func(err error, where string)
	add = func(err error, where string) {
		switch e := err.(type) {
		case openapi3.MultiError:
			for _, each := range e {
				add(each, where)
			}
		case *openapi3filter.RequestError:
			if e.Parameter != nil {
				where = e.Parameter.Name
			}
			if e.Err == nil {
				out.Fields = append(out.Fields, Field{where, e.Reason})
				return
			}
			add(e.Err, where)
		case *openapi3.SchemaError:
			if at := strings.Join(e.JSONPointer(), "."); at != "" {
				where = at
			}
			out.Fields = append(out.Fields, Field{where, strings.TrimPrefix(e.Reason, "at '': ")})
		default:
			out.Fields = append(out.Fields, Field{where, err.Error()})
		}
	}
	add(err, "")
	return out
}
