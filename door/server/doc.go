// Package server is bellows over HTTP and JSON: the API of a daemon, version 1, on a unix socket and, if wanted, over
// TLS on the network. Package client is the client for it.
//
// The mode and the group of the socket say who can connect: see Door. The kernel identifies the caller of a
// connection to the socket, a token that of a request over the network, and access.go says who may do what. GET
// /openapi.json describes the API; it is generated from the types in this package and in package api. Errors are an
// Error as JSON. Sizes are in bytes, CPU in millicores, times in RFC 3339.
package server
