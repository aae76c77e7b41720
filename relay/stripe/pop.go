package stripe

// pop removes the first element of a queue and returns it. The queue's array does not refer to it any longer: chunks refer to
// their connection, which would be kept until the array is replaced.
func pop[T any](queue *[]T) (first T) {
	var none T
	first, (*queue)[0] = (*queue)[0], none
	*queue = (*queue)[1:]
	return first
}
