// Package keeper keeps the memory of the containers of one Linux machine. It decides when their programs run and with
// how much memory: it drives the memory manager (core/memory), and carries out orders to hold, throttle, resize and
// page out.
//
// A Container is a control group, an envelope, and a stance: who has stopped its programs. Its Owner starts it, ends
// it, and keeps its Records, by which the next keeper goes on, and who looks after the container while there is none.
// The agent is such an owner; the keeper knows neither its supervisors nor its folders.
//
// An owner asks for memory (Admit) before it starts a container, says that it has started (Started) or hands over one
// that it found (Adopt, then Watch), passes on orders (Order), and says that it has ended (Ended).
package keeper
