// Package demo runs real programs with too little of a resource, in several rounds, and judges the results. Each part
// has a mix of programs, contenders, which are ways to share it, runs of it under each contender, a summary per
// contender, a report that judges the promises, and pictures.
//
// The part elastic measures programs and predicts a mix of them in the simulator, from their profiles and the job file
// alone. Then it runs the mix on this machine under fixed and elastic allocations, and says which allocation was best
// and why. The part flex runs programs whose memory use rises and falls in fixed containers and in FLEX containers,
// together with a stream of short jobs; the part real does so with a JVM, a sort, Python and memcached, and keeps its
// runs. The part demand runs existing programs on a disk of a stated speed, each alone and then all of them under
// policies that do and do not look ahead. It has two mixes: one is about the disk, the other about cores.
package demo
