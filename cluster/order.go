package cluster

// Order is a decision with what must be known to carry it out.
type Order struct {
	Decision
	// Container is what a Start makes and a Kill ends.
	Container ContainerID `json:"container,omitzero"`
	// Launch is set for a Start.
	Launch *Launch `json:"launch,omitempty"`
}
