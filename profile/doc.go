// Package profile turns a few measured runs of a program at different memory sizes into a model of its run time at every
// size: its memory elasticity (YARN-ME, section 2). Fit chooses among four shapes by leaving out one size at a time,
// Evaluate says how well the chosen one does on sizes it has never seen, and Model.Apply hands it to the scheduler.
// Everything is a pure function of its arguments.
package profile
