package cluster

// Order is a decision with the information needed to carry it out.
type Order struct {
	Decision
	// Container is the container that a Start creates and a Kill ends.
	Container ContainerID `json:"container,omitzero"`
	// Launch is set for a Start.
	Launch *Launch `json:"launch,omitempty"`
}
