// Package oftest is a switch in memory for tests of controllers, and networks of such switches.
package oftest
