// Package demo repeats and judges what real programs do with too little memory. The elastic part measures programs, predicts a mix
// of them in the simulator from their profiles and the job file alone, runs the mix on this machine under fixed and elastic
// allocations, round after round, and says which allocation won and why. The flex part runs programs whose memory comes and goes in
// fixed containers and in FLEX containers, beside a stream of short jobs; the real part does so with a JVM, a sort, Python and
// memcached.
package demo
