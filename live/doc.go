// Package live drives the engine in real time. One goroutine, the Driver's, owns the engine. Submissions, events of a
// Backend and timers each become a step, and the decisions of the engine go out through the Backend. Every step is
// written to the event log, and what must survive to the store, before it is acted on. After a crash the engine is
// rebuilt from the store and from the inventory of the Backend; containers run on meanwhile.
package live
