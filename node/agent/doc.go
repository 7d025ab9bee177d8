// Package agent runs containers on one Linux machine. Every container has a small supervisor process, which outlives
// the agent: it starts the program inside the container's control group, waits for it, and records how it ended. The
// agent starts supervisors, watches them, kills, measures, and after a restart finds all of them again.
//
// Everything about a container is in a folder of its own, STATE/containers/JOB-STAGE-INDEX-RUN:
//
//	spec.json     what to run, as whom, in which control group; written by the agent before anything runs
//	lock          locked (flock) from before the supervisor exists until it has ended; its text is the supervisor's pid
//	started.json  when the program began; written by the supervisor
//	killed        exists when the agent has received an order to end the container
//	preempted     exists next to killed if the order was to free the container's resources for other tasks
//	cause.json    why it was to end, if not for its owner; written before killed
//	want.json     what is wanted of it, if it is not as it was started: its hold, its bound, its size, whether its memory
//	              is out; written by the agent before that takes effect
//	usage         what it used over time; written by the agent while it runs
//	input         the socket of the program's input, if it has one; made by the supervisor
//	supervisor.log what the supervisor printed
//	exit.json     how it ended; written by the supervisor in one write
//
// The lock answers the question that a process id cannot: whether a process is, or is about to be, responsible for the
// container. The agent takes the lock, the supervisor inherits it, and the kernel releases it when the last of them is
// gone, however they ended. Space for exit.json is reserved before the program runs, so that no exit code is lost on a
// full disk.
//
// A file that cannot be read now is read again, and nothing is judged meanwhile: see isUnread.
package agent
