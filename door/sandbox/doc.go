// Package sandbox is bellows in a process and a directory of its own, for demonstrations and studies of real programs:
// a place to work in, swap, and a machine to manage. It removes what it made, and what a killed process left behind.
package sandbox
