// Package command is what the commands of this project have in common: the tree of commands with its help, how a wrong usage is
// told, and the exit codes.
package command
