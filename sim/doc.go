// Package sim drives the engine in virtual time. The truth of what tasks do stands here and nowhere else; the policy sees
// estimates. Nothing in it reads a clock: the same workload, settings and seed give the same bytes.
package sim
