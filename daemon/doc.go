// Package daemon is what runs between `bellows up` and `bellows down`: the lock and the store of a state directory, the agent of
// this machine, the driver, and the API. Whoever needs a whole daemon, the command, the demonstration or a test, opens it here.
package daemon
