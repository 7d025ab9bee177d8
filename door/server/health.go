package server

import "context"

// Health is the answer of a process that answers.
type Health struct {
	Version string `json:"version"`
	PID     int    `json:"pid"`
}

// Readiness is the answer of a daemon that serves.
type Readiness struct {
	Ready bool `json:"ready" doc:"always true: a daemon that does not serve answers with an error, whose message is the reason"`
}

// health adds the operations by which another program finds out whether the daemon works. They are open to all who
// connect.
func (s *Server) health(a *operations) {
	register(a, anyone, "GET", "/v1/health", "health", "Answer if the process does", 200,
		func(context.Context, *struct{}) (*body[Health], error) {
			return &body[Health]{Health{Version: s.daemon.Version, PID: s.daemon.PID}}, nil
		})
	register(a, anyone, "GET", "/v1/ready", "ready",
		"Answer with 200 if the daemon serves, with 503 and the reason if it does not", 200,
		func(context.Context, *struct{}) (*body[Readiness], error) {
			return &body[Readiness]{Readiness{Ready: true}}, s.driver.Ready()
		})
}
