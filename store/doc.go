// Package store stores what must survive the daemon: jobs, the runs of their tasks, elasticity profiles and the runs of
// the daemon, in one SQLite file. A write that was reported as successful is still there after a crash. Jobs and
// profiles are stored with their owner.
package store
