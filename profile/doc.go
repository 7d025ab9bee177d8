// Package profile turns a few measured runs of a program at different memory sizes into a model of its run time at every
// size: its memory elasticity (YARN-ME, section 2). Fit chooses among four shapes by leaving out one size at a time,
// Evaluate says how well the chosen one does on sizes it has never seen, and Model.Apply hands it to the scheduler.
// Everything is a pure function of its arguments.
//
// SparkSort is a task of Spark that sorts, whose settings tell what it spills.
//
// MeasuredPaging has what paging costs the same programs that can spill, measured on a real disk: a curve per way of using
// memory, of points at shares of ideal memory with all repeats of both ways. PageSlowdown and SpillSlowdown draw lines
// between the medians; BreakEven is where they cross, and CheaperToPage answers by it.
package profile
