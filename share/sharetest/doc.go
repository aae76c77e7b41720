// Package sharetest has the scenarios of the reservations thesis (chapters 4 and 5): flows,
// controlled and random rates, the network of figure 4.1, and a runner of a share.Scheme over
// the fluid model share.Deliver. Tests of schemes and the bench of reservations use it. Rates
// are bit/s; one cycle is one second of the thesis.
package sharetest
