// Package experiments is the project's lab book: the tables and figures of papers, each in a file of its own. The file
// states the paper's claims, how we run the experiment, and the values that we chose where the paper gives none, and
// compares our numbers with the paper's.
//
// Simulated results are labelled as simulated. The same seed gives the same results, byte for byte, on any number of
// cores.
package experiments
