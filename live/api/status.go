package api

import "time"

// Daemon identifies the process that answers, and its settings.
type Daemon struct {
	Version  string            `json:"version" doc:"of the program"`
	PID      int               `json:"pid" doc:"of the process"`
	UID      uint32            `json:"uid" doc:"id of the user that the daemon runs as"`
	State    string            `json:"state_dir" doc:"state directory"`
	Settings map[string]string `json:"settings,omitempty" doc:"settings given for the policy"`
	// Operators own everything: see access.
	Operators *Group `json:"operators,omitempty" doc:"group whose members may see and change the jobs of all users, as root may; omitted if there is none"`
	// Configuration is nil if the daemon has no configuration file.
	Configuration *Configuration `json:"configuration,omitempty" doc:"the configuration file; omitted if there is none"`
	// Listens is nil unless the daemon listens on the network.
	Listens *Listens `json:"listens,omitempty" doc:"where the daemon listens on the network; omitted if it does not"`
}

// Listens says where a daemon listens on the network.
type Listens struct {
	Address     string    `json:"address" doc:"host and port"`
	Certificate time.Time `json:"certificate_expires" doc:"when its certificate expires"`
}

// Configuration is the configuration file of a daemon.
type Configuration struct {
	File    string   `json:"file,omitempty" doc:"its path; omitted if it was removed"`
	Waiting []string `json:"waiting,omitempty" doc:"settings that have changed in the file since the daemon started, and that apply when it is started again"`
	Mistake string   `json:"mistake,omitempty" doc:"why the file was not applied when it was read again; omitted if it was applied"`
}

// Shown returns a copy of c for a status; nil if there is nothing to show.
func (c Configuration) Shown() *Configuration {
	if c.File == "" && c.Waiting == nil && c.Mistake == "" {
		return nil
	}
	return &c
}

// Status is a daemon and the machine it manages.
type Status struct {
	Daemon
	ClusterStatus
}

// Group is a group of users of the system.
type Group struct {
	Name string `json:"name"` // the number of a group without a name
	GID  uint32 `json:"gid"`
}

// Machine is the state of the daemon and its nodes, and what the containers use.
type Machine struct {
	Status Status    `json:"status"`
	At     time.Time `json:"at" doc:"when the containers were measured"`
	Tasks  []Task    `json:"tasks,omitempty" doc:"the tasks that have a container, with usage"`
}

// Dropped is the data of the last event of a watch that the server ends.
type Dropped struct {
	Reason string `json:"reason" doc:"why the daemon ends the stream"`
}
