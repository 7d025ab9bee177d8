// Package demo is the demonstration, of two parts. The elastic part measures real programs, runs the same mix of real jobs
// on this machine under fixed and elastic allocations, predicts all of it in the simulator from the profiles and the job
// file alone, and says which allocation won and why. The flex part runs programs whose memory comes and goes in fixed
// containers and in FLEX ones, beside a stream of short jobs. It wires a machine and the simulator, as a command does, and
// only the command imports it.
package demo
