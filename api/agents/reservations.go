package agents

// Egress is the only Reservation.Direction: the packets that the interface sends.
const Egress = "egress"
