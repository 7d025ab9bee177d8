// Package peercred asks the kernel who is at the other end of a unix socket.
package peercred
