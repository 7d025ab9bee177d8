// Package importer turns what other systems recorded into workloads. Each format has a file of its own; what it lacks is a
// field of its type, with a default and where that comes from, so that nothing is assumed in silence. docs/workloads.md
// tells it all in tables.
package importer
