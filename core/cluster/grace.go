package cluster

import "time"

// DefaultGrace is the usual time between the request that a program end, SIGTERM, and its kill.
const DefaultGrace = 10 * time.Second
