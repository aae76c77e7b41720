module headgate.dev/headgate/examples/tenant/go

go 1.26.8

require (
	golang.org/x/sys v0.49.0
	headgate.dev/headgate v0.0.0
)

require (
	github.com/apapsch/go-jsonmerge/v2 v2.0.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/oapi-codegen/runtime v1.8.0 // indirect
)

// Outside of this repository: remove this line, and "go get headgate.dev/headgate".
replace headgate.dev/headgate => ../../..
