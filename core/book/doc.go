// Package book is what an engine knows of a cluster: a Book enters events into a Snapshot, and opens a Plan on it, in
// which a policy reads the Snapshot and takes decisions. All state that outlives a step is in the Snapshot, so that
// it follows from events and decisions alone. It knows no policy, no clock and no driver.
package book
