// Package capacity finds the capacity of a path's narrow link.
package capacity
