// Package client is the client of a daemon's API: over its unix socket, or over TLS on the network. It imports neither
// the driver nor the server. Package api has the types of what it sends and receives.
package client
