package input

import "time"

// Protocol is what a connection with input is upgraded to.
const Protocol = "bellows-input"

// Patience is how long a program waits for input that no client sends: after an agent has run for that time without a
// client, the program's input ends. Without an agent the input waits.
const Patience = time.Minute
