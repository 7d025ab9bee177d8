// Package store stores what must survive the daemon: jobs, the runs of their tasks, elasticity profiles, tokens and
// the runs of the daemon, in one SQLite file. A write that was reported as successful is still there after a crash.
// Jobs, profiles and tokens are stored with their owner.
package store
