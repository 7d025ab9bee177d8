// Package experiments is the project's lab book: the tables and figures of papers. The file of a paper, such as
// yarn-me.yaml, has the texts of its experiments: how we run each, the values that we chose where the paper gives none,
// the paper's claims, and when each counts as holding. A Go file per figure runs the experiment, makes tables and
// charts, and judges the claims by our numbers.
//
// Simulated results are labelled as simulated. The same seed gives the same results, byte for byte, on any number of
// cores.
package experiments
