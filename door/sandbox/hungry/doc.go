// Package hungry contains programs whose use of memory grows and shrinks, and which check their results: demonstrations
// and studies run them in containers.
package hungry
