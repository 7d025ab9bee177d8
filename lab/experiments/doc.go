// Package experiments is the project's lab book: the tables and figures of papers, each in a file of its own that says what
// the paper claims, how we run it, and which values we chose where the paper gives none; and computes our numbers beside
// the paper's.
//
// What is simulated is called so. The same seed gives the same results, byte for byte, on any number of cores.
package experiments
