// Package share divides executors: among the applications of a pool, and among the stages of an application. It is
// the rule of Mira (Kaufmann et al., "Mira: Sharing Resources for Distributed Analytics at Small Timescales"), whose
// resource manager is section III.C and whose application scheduler is section III.D. All of it is pure,
// deterministic and does not allocate once its buffers have grown.
package share
