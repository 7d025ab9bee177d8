// Package sparkstream compares streams of queries of several applications of Spark on executors of a pool, and on Spark
// standalone with as many executors.
package sparkstream
