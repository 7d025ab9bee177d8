// Package cluster defines the nouns of bellows as plain values: nodes, jobs, stages, tasks, the events that happen to
// them, the decisions taken about them, and the reasons of these. What an engine knows of them is package book. It
// knows no policy, no clock and no driver.
package cluster
