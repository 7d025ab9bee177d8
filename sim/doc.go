// Package sim drives the engine in virtual time. It alone knows the truth of what tasks do; the policy sees estimates.
// Nothing in the package reads a clock: the same workload, settings and seed give the same bytes.
package sim
