// Package agent runs containers on one Linux machine. Every container has a small supervisor process, which outlives
// the agent: it starts the program inside the container's control group, waits for it, and records how it ended. The
// agent starts supervisors, watches them, kills, measures, and after a restart finds all of them again.
//
// Everything that is known of a container is in a folder of its own, STATE/containers/JOB-STAGE-INDEX-RUN:
//
//	spec.json     what to run, as whom, in which control group; written by the agent before anything runs
//	lock          held (flock) from before the supervisor exists until it has ended; its text is the supervisor's pid
//	started.json  when the program began; written by the supervisor
//	killed        exists once the agent has been told to end the container
//	preempted     exists beside it if that was to give its room to others
//	exit.json     how it ended; written by the supervisor, all at once
//
// The lock answers the question that a process id cannot: whether anybody is, or is about to be, responsible for the
// container. It is taken by the agent, inherited by the supervisor, and the kernel gives it back when the last of them is
// gone, however they ended. Room for exit.json is set aside before the program runs, so that a full disk loses no exit
// code.
package agent
