// Package demo runs real programs with too little memory, in several rounds, and judges the results. The elastic part
// measures programs and predicts a mix of them in the simulator, from their profiles and the job file alone. Then it
// runs the mix on this machine under fixed and elastic allocations, and says which allocation was best and why. The
// flex part runs programs whose memory use rises and falls in fixed containers and in FLEX containers, together with a
// stream of short jobs; the real part does so with a JVM, a sort, Python and memcached.
package demo
