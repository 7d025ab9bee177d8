// Package framework models what less memory costs a task of Hadoop, Spark or Tez (YARN-ME, section 2). The settings of the
// framework tell what a task spills at which size; two runs are then enough to know its run time at every size (Fit).
package framework
