// Package sandbox is bellows in a process and a directory of its own, as demonstrations and studies of real programs need it: a
// place to work in, swap, and a machine to manage. It takes away what it made, and what was left of a process that was killed.
package sandbox
