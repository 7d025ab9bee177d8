// Package terminal lays out for people what the commands of this project print: tables, folded sentences, JSON, and one line
// that shows how far long work is.
package terminal
