package cluster

// Order is a decision with the information needed to carry it out.
type Order struct {
	Decision
	// Container is the container that a Start creates, a Kill ends, a Throttle bounds, a Suspend stops, a Resume lets go
	// on and a Resize resizes.
	Container ContainerID `json:"container,omitzero"`
	// Launch is set for a Start.
	Launch *Launch `json:"launch,omitempty"`
}
