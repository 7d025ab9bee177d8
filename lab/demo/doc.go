// Package demo runs real programs with too little memory, in several rounds, and judges the results. Each part has a mix
// of programs, contenders, which are ways to give memory to the mix, runs of it under each contender, a summary per
// contender, a report that judges the promises, and pictures.
//
// The part elastic measures programs and predicts a mix of them in the simulator, from their profiles and the job file
// alone. Then it runs the mix on this machine under fixed and elastic allocations, and says which allocation was best
// and why. The part flex runs programs whose memory use rises and falls in fixed containers and in FLEX containers,
// together with a stream of short jobs; the part real does so with a JVM, a sort, Python and memcached, and keeps its
// runs.
package demo
