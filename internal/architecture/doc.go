// Package architecture contains the rules for the folders of this project, as a table with a reason for each rule, and
// the check of the rules, all of them tests. They run the check on the project, and on small bad examples of each rule.
//
// The rules are for code that is not a test: tests may import any package.
package architecture
