// Package daemon is the process between `bellows up` and `bellows down`: the lock and the store of a state directory,
// the agent of this machine, the driver, and the API. The command, the demonstration and tests open whole daemons here.
package daemon
