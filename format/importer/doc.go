// Package importer turns recordings of other systems into workloads. Each format has a file of its own. A value that
// the format lacks is a field of its type, with a default and the default's source, so that nothing is assumed in
// silence. docs/reference/importers.md describes all formats in tables.
package importer
