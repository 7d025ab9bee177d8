// Package demo runs existing programs on a disk of a stated speed, each alone and then all of them under policies that
// do and do not look ahead, in several rounds, and judges the results. It has two mixes of programs: one is about the
// disk, the other about cores. A comparison has contenders, which are policies, runs under each of them, a summary per
// contender, a report that judges the promises, and pictures.
package demo
