package bench

import "time"

// Pick returns the first value for a smoke run, and the second otherwise.
func Pick[T any](quick bool, smoke, full T) T {
	if quick {
		return smoke
	}
	return full
}

// Takes returns the estimated duration of a case (Case.Takes), which is shorter in a smoke run.
func Takes(smoke, full time.Duration) func(quick bool) time.Duration {
	return func(quick bool) time.Duration { return Pick(quick, smoke, full) }
}
