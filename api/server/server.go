package server

import (
	"context"
	"errors"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	openapi "headgate.dev/headgate/api"
	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/unit"
)

// Limits of requests, chosen by this project.
const (
	// maxBody is the maximum size of a request body, and maxLargeBody that of a request with a whole document:
	// an interface of 16,000 groups is 3 MB.
	maxBody, maxLargeBody = 64 << 10, 16 << 20
	// largeBodyTimeout is the time in which a large body must arrive. The client is authenticated by then.
	largeBodyTimeout = time.Minute
)

// Server implements the API.
type Server struct {
	Store  *store.Store
	Agents Agents
	// Fabric shows the network of switches.
	Fabric Fabric
	// Reservations decides about reservations.
	Reservations Reservations
	// Sign signs the certificate of an agent.
	Sign func(host string, request []byte) (c api.Certificate, serial string, err error)
	// SignSwitches signs a certificate for switches, for a number of days.
	SignSwitches func(ids []fabric.DPID, request []byte, days int) (api.SwitchCertificate, error)
	// StoredBeside, if set, returns what a host has beside the document of a device, and what a tenant has beside its groups on that device.
	StoredBeside func(host, dev, tenant string) Stored
	// Restored, if set, returns the revision of a restore that no operator has confirmed, before which all documents are of the backup. 0 is none.
	Restored func(ctx context.Context) (revision int64, err error)
	// HighestEpoch, if set, returns the highest epoch of agents that have a later desired state than the service, 0 without one.
	HighestEpoch func() uint64
	// Identify, if set, is called with who the peer of a request is: a tenant, or the id of a token without one.
	Identify func(ctx context.Context, peer string)
	// Version is the version of this program.
	Version string
	// Writable reports whether the controller accepts changes now.
	Writable func() bool
	// Confirmed returns when the store last confirmed that this controller has all changes; nil means that it always has them.
	Confirmed func() time.Time
	// Cluster answers requests with the data of all controllers together. nil means that this controller is the
	// only one.
	Cluster http.Handler
	// Burst, if set, returns the burst that a limit lets through when it is enforced.
	Burst func(limit unit.Rate) unit.Bytes
	// Changes, if set, returns for each of the paths of GET requests a channel that receives a value after each
	// change that the response may depend on, until the context of the request for the paths is done. nil means
	// that nothing announces changes.
	Changes func(r *http.Request, paths []string) []<-chan struct{}
	// OnRequest, if set, is called after each request to an operation of the API.
	OnRequest func(operation string, status int, took time.Duration)

	spec, plain  *openapi3.T // plain is spec as of OpenAPI 3.0
	operations   map[*openapi3.Operation]*Operation
	mux          *http.ServeMux
	rateLimits   rateLimits
	tokenLimiter tokenLimiter
	streams      streams
	turns        turns // of requests for reservations
	largeBodies  turns
	health       health
}

// Agents gives access to the data that agents report.
type Agents interface {
	// State returns the state that a host's agent has reported; false while no agent is connected.
	State(host string) (api.HostState, bool)
	// Names returns the alternative names of a host's devices, if its agent reports them.
	Names(host string) group.AltNames
	// Rates returns the newest rates of a host's groups; false if there are none.
	Rates(host string) (api.RateList, bool)
	// Loads returns the load of each direction of a host's devices, from the groups for which sees returns
	// true (nil: all groups), and the first of those groups that are at risk. problems counts the devices
	// whose desired state is not in force.
	Loads(host string, sees func(dev, direction, path string) bool) (all []Load, risks []api.GroupAtRisk, problems int, connected bool)
	// Usage returns the usage records of hosts; missing lists the hosts that did not answer.
	Usage(ctx context.Context, hosts []string, since, until time.Time) (rows []api.Usage, missing []string)
	// Sets returns the states of a host's connection sets, from its agent.
	Sets(ctx context.Context, host string) (api.CollectiveStateList, error)
	// Relays returns the states of the relay agents that run on a host, from its agent, and RelayEnded the last
	// connections of one of them that have ended.
	Relays(ctx context.Context, host string) (api.RelayList, error)
	RelayEnded(ctx context.Context, host, relay string) (api.RelayEndedList, error)
	// Probe starts a measurement on a host. ProbeResult returns its outcome, also if Probe fails.
	Probe(host string, id string, r api.ProbeRequest) error
	// ProbeResult returns the state and result of a measurement; false if it is not known.
	ProbeResult(host, id string) (api.Probe, bool)
}

// Handler returns the handler of the API.
func (s *Server) Handler() (http.Handler, error) {
	spec, err := openapi3.NewLoader().LoadFromData(openapi.Specification())
	if err != nil {
		return nil, err
	}
	s.spec = spec
	plain := *spec
	plain.OpenAPI = "3.0.3"
	s.plain = &plain
	if s.operations, err = readOperations(spec); err != nil {
		return nil, err
	}
	s.mux = http.NewServeMux()
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if methods := s.methods(r); len(methods) > 0 {
			w.Header().Set("Allow", strings.Join(methods, ", "))
			problem(w, r, refuse(http.StatusMethodNotAllowed, "path %s does not have the method %s: use %s", r.URL.Path, r.Method, strings.Join(methods, ", ")))
			return
		}
		problem(w, r, refuse(http.StatusNotFound, "path %s not found", r.URL.Path))
	})
	out := HandlerWithOptions(s, StdHTTPServerOptions{
		BaseRouter: s.mux, Middlewares: []MiddlewareFunc{s.validate},
		ErrorHandlerFunc: func(w http.ResponseWriter, r *http.Request, err error) {
			problem(w, r, refuse(http.StatusBadRequest, "%v", err))
		},
	})
	if s.Cluster == nil {
		s.Cluster = out
	}
	return out, nil
}

// validate calls the next handler only for requests that match the specification and that the caller is
// permitted to make.
func (s *Server) validate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, item, operation := s.find(r.Pattern, r.Method)
		if operation == nil {
			problem(w, r, refuse(http.StatusNotFound, "path %s not found", r.URL.Path))
			return
		}
		if s.OnRequest != nil {
			watched := &statusWriter{ResponseWriter: w, status: http.StatusOK}
			w = watched
			defer func(began time.Time) {
				s.OnRequest(operation.OperationID, watched.status, time.Since(began))
			}(time.Now())
		}
		rules := s.operations[operation]
		r, err := s.admit(r.WithContext(store.ReadOnceContext(r.Context())), rules, operation)
		if err != nil {
			problem(w, r, err)
			return
		}
		if rules.largeBody && r.Method != http.MethodGet {
			// Bodies of megabytes wait in memory, and take long to validate: those of one tenant wait for each other.
			end, err := s.largeBodies.take(r.Context(), principalOf(r).Tenant)
			if err != nil {
				return // the client has disconnected
			}
			defer end()
		}
		if r, err = s.match(w, r, rules, path, item, operation); err != nil {
			problem(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// statusWriter records the status of a response.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap returns the wrapped writer, for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// admit authenticates the caller, and checks its role and rate limit. The request that admit returns has the principal in its context.
func (s *Server) admit(r *http.Request, rules *Operation, operation *openapi3.Operation) (*http.Request, error) {
	if operation.Security == nil || len(*operation.Security) > 0 {
		p, err := s.authenticate(r)
		if err != nil {
			return r, err
		}
		if !rules.permits(p.Role) || p.Tenant != "" && !rules.permits(store.TenantRole) {
			return r, refuse(http.StatusForbidden, "the role %s does not permit this operation", p.Role)
		}
		if wait := s.rateLimits.take(p, s.rateLimitOf(r.Context(), p)); wait > 0 {
			return r, tooMany(wait)
		}
		if s.Identify != nil {
			s.Identify(r.Context(), ownerOf(p))
		}
		r = r.WithContext(context.WithValue(r.Context(), principalKey{}, p))
	}
	return r, nil
}

// match validates a request, of which it reads the body, against the specification.
func (s *Server) match(w http.ResponseWriter, r *http.Request, rules *Operation, path string, item *openapi3.PathItem, operation *openapi3.Operation) (*http.Request, error) {
	if err := unknownQuery(r.URL.Query(), item, operation); err != nil {
		return r, err
	}
	most := int64(maxBody)
	if rules.largeBody {
		most = maxLargeBody
		if p := principalOf(r); p.Tenant != "" {
			most = maxTenantBody
		}
		// If this fails, the read deadline of the server stays in force.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(largeBodyTimeout))
	}
	body := &countedBody{ReadCloser: http.MaxBytesReader(w, r.Body, most)}
	r.Body = body
	defer func() { s.rateLimits.charge(principalOf(r), body.read/bytesPerRequest) }()
	params := map[string]string{}
	for _, p := range append(item.Parameters, operation.Parameters...) {
		if p.Value.In == "path" {
			params[p.Value.Name] = r.PathValue(p.Value.Name)
		}
	}
	matches := func(spec *openapi3.T) error {
		return openapi3filter.ValidateRequest(r.Context(), &openapi3filter.RequestValidationInput{
			Request: r, PathParams: params,
			Route:   &routers.Route{Spec: spec, Path: path, PathItem: item, Method: r.Method, Operation: operation},
			Options: &openapi3filter.Options{MultiError: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
		})
	}
	// The library's validator of OpenAPI 3.1 compiles the schemas for each request, which is a fifth of the processor time of a reservation. That of
	// 3.0 finds the same mistakes in this specification (TestPlainValidation), and says less well what they are.
	if matches(s.plain) == nil {
		return r, nil
	}
	return r, invalid(matches(s.spec))
}

// place is where a validator found a mistake, which Field names in its own way.
var place = regexp.MustCompile(`(?m)^(?:- )?at '[^']*': `)

// reasonOf returns the reasons of a validator in one line, without the places.
func reasonOf(text string) string {
	if strings.HasPrefix(text, "jsonschema validation failed") { // the reasons are below, each in a line
		_, text, _ = strings.Cut(text, "\n")
	}
	return strings.ReplaceAll(place.ReplaceAllString(text, ""), "\n", "; ")
}

// invalid returns a refusal that names the fields that do not match the specification.
func invalid(err error) error {
	if err == nil {
		return nil
	}
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return refuse(http.StatusRequestEntityTooLarge, "the request body is larger than the %d bytes that this resource may have: send less", large.Limit)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return refuse(http.StatusRequestTimeout, "the request timed out before its whole body arrived: send it faster")
	}
	out := refuse(http.StatusBadRequest, "the request does not match the API specification")
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
			out.Fields = append(out.Fields, Field{where, reasonOf(e.Reason)})
		default:
			out.Fields = append(out.Fields, Field{where, err.Error()})
		}
	}
	add(err, "")
	return out
}
