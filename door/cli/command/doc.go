// Package command has the shared parts of the commands of this project: the tree of commands with its help, errors of
// usage, and exit codes.
package command
