// Package service joins a controller with its store and its surroundings: the data directory, the etcd that it runs
// or that exists, the addresses that it announces, the first operator token, metrics and the service manager.
//
// It decides nothing itself: package controller has the loop, package backend the store.
package service
