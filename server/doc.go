// Package server is bellows over HTTP and JSON on a unix socket: the API of a daemon, version 1, and the client for it.
//
// The socket has mode 0600, so that only the daemon's user and root connect; the kernel identifies the caller of a
// connection. GET /openapi.json describes the API; it is generated from the types in this package. Errors are an Error
// as JSON. Sizes are in bytes, CPU in millicores, times in RFC 3339.
package server
