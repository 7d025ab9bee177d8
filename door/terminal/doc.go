// Package terminal formats the output of the commands for people: tables, folded sentences, JSON, and a line with the
// progress of long work.
package terminal
