// Package architecture holds the rules that the folders of this project keep, as a table with the reason beside each, and
// the check that keeps them true. Its tests run the check on the project, and on small bad examples of each rule.
//
// The rules speak of code that is not a test: tests may import what they like.
package architecture
