// Package store keeps what must survive: jobs, the runs of their tasks, elasticity profiles and the runs of the daemon,
// in one SQLite file of which everything that was reported as written is still there after a crash. What belongs to
// somebody says to whom.
package store
