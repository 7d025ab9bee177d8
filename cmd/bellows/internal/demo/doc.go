// Package demo is the demonstration: it measures real programs, runs the same mix of real jobs on this machine under fixed
// and elastic allocations, predicts all of it in the simulator from the profiles and the job file alone, and says which
// allocation won and why. It wires a machine and the simulator, as a command does, and only the command imports it.
package demo
