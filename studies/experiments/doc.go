// Package experiments is the project's lab book: the tables and figures of papers, a package for each paper. The file
// of a paper, such as yarn-me.yaml, has the texts of its experiments: how we run each, the values that we chose where
// the paper gives none, the paper's claims, and when each counts as holding. A Go file per figure runs the experiment,
// makes tables and charts, and judges the claims by our numbers. Package lab has what all papers need.
//
// A further experiment needs its texts in the file of its paper, a function that runs it, and an entry in the paper's
// Runs. The function judges each claim of the file by Paper.Stated(experiment, id).
//
// Simulated results are labelled as simulated. The same seed gives the same results, byte for byte, on any number of
// cores.
package experiments
