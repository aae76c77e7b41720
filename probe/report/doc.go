// Package report formats the results of measurements for people: the report of a path, of a watched limiter, of
// compared paths and of a mesh as tables, and an answer as a line.
//
// It measures and estimates nothing: packages path, measure and mesh have the results, also as JSON.
//
// Units: rates in bit/s and sizes in bytes of layer 2, with the digits that package probe gives an estimate.
package report
