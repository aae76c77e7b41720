package view

import "headgate/group"

// lend fills in who borrows and who lends. A group borrows what it has beyond
// its guarantee. What it leaves idle is lent as far as others borrow: siblings
// first draw on what no guarantee covers and on each other alike, so that each
// idle part is used in the same proportion. control is the rate of control
// traffic, which takes what it needs of the limit and is not counted as lent.
func lend(t group.Tree, rows []Row, control float64) {
	n := min(len(t.Nodes), len(rows))
	byParent := map[int][]int{}
	for i := range n {
		byParent[t.Nodes[i].Parent] = append(byParent[t.Nodes[i].Parent], i)
	}
	for parent, siblings := range byParent {
		guarantee, fromAbove := float64(t.Limit)-control, 0.0
		if parent >= 0 && parent < n {
			guarantee = float64(rows[parent].Guarantee)
			fromAbove = max(0, rows[parent].Rate-guarantee)
		}
		var borrowed, idle, covered float64
		for _, i := range siblings {
			r := &rows[i]
			r.Borrowed = max(0, r.Rate-float64(r.Guarantee))
			borrowed += r.Borrowed
			idle += max(0, float64(r.Guarantee)-r.Rate)
			covered += float64(r.Guarantee)
		}
		idle += max(0, guarantee-covered)
		// What the parent itself borrowed does not come from these siblings.
		used := max(0, borrowed-fromAbove)
		if idle <= 0 {
			continue
		}
		part := min(1, used/idle)
		for _, i := range siblings {
			rows[i].Lent = max(0, float64(rows[i].Guarantee)-rows[i].Rate) * part
		}
	}
}
