package share

// Node is a queue or an application in a tree of queues.
type Node struct {
	Claim
	First, Children int // the node's children are Children nodes from First on; an application has none
}

// DivideTree divides total executors among the children of nodes[0], what each queue is granted among its children,
// and so on, each time as Divide does. It writes what each node is granted to granted, which has the length of nodes,
// and returns granted.
//
// A node comes before its children, and the children of a node are neighbors. Demand and Held of a queue are the sums
// of its children's, and its Min is not less than what its children are promised: DivideTree sets them.
func (f *Fair) DivideTree(total int, nodes []Node, granted []int) []int {
	for i := len(nodes) - 1; i >= 0; i-- {
		n := &nodes[i]
		if n.Children == 0 {
			continue
		}
		n.Demand, n.Held = 0, 0
		promised := 0
		for _, c := range nodes[n.First : n.First+n.Children] {
			n.Demand += c.high()
			n.Held += c.Held
			promised += c.low()
		}
		n.Min = max(n.Min, promised)
	}
	granted[0] = min(total, nodes[0].high())
	for i, n := range nodes {
		if n.Children > 0 {
			f.claims = f.claims[:0]
			for _, c := range nodes[n.First : n.First+n.Children] {
				f.claims = append(f.claims, c.Claim)
			}
			f.Divide(granted[i], f.claims, granted[n.First:n.First+n.Children])
		}
	}
	return granted
}
