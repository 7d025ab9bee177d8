// Package profile turns a few measured runs of a program at different memory sizes into a model of its run time at
// every size: its memory elasticity (YARN-ME, section 2). Fit chooses among four shapes by leaving out one size at a
// time, Evaluate measures the errors of the chosen model at sizes that it was not fitted to, and Model.Apply passes it
// to the scheduler. Everything is a pure function of its arguments.
//
// History learns what a program demands when, from its past runs:
//
//	samples --Segment--> phases of a run --History.Observe--> --History.Estimate--> phases of the next run
//
// Segment finds phases at change points. An estimate has the number of runs, the model and its error for each number,
// and runs that went two ways are two variants. Follow finds the phase that a run has reached, from what it used so
// far.
//
// PhaseModel predicts the durations of phases of a program with many runs, and keeps only the newest runs. An
// estimate uses it where it errs less than the other models.
//
// History.Reserve returns how much memory to reserve for a run. Ends for want of memory (Shortfall) and runs that were
// held back (Run.AtLeast) teach it lower bounds. Studies compare it with other methods; the daemon reserves what is
// stated, and does not use it yet.
package profile
