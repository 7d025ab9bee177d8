// Package framework models how much longer a task of Hadoop, Spark or Tez takes with less memory (YARN-ME, section 2).
// The settings of the framework determine how much a task spills with how much memory; two runs are then enough to
// predict its run time at every size (Fit).
package framework
