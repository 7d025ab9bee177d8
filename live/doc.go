// Package live drives the engine in real time. One goroutine, the Driver's, owns the engine: submissions, events of a
// Backend and timers come in, each becomes a step, and what the engine decides goes out through the Backend. Every step
// is written to the event log, and what must last to the store, before anybody acts on it. After a crash the engine is
// built again from the store and from the inventory that the Backend takes; containers go on meanwhile.
package live
