// Package report formats a run of a lab for people: the tables of the result, a line for each sample
// while the lab runs, and the frames of the live view, which package view draws.
//
// It measures nothing and shows everything: package lab has the results, also as JSON.
//
// Units: rates in layer-2 bits per second, times with the unit in their names.
package report
