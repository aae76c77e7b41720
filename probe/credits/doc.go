// Package credits measures the burst credits of a path: a token bucket that takes seconds to empty, as that of a cloud's
// burst instance (a baseline rate, a burst rate, and gigabytes between them) or of a cable line.
//
// The tokenrate package finds a bucket that one train empties. Here trains follow each other so closely that a bucket
// does not fill between them, until one is limited. The trains before it used what the bucket held, less the tokens that
// were added meanwhile (the token bucket (P, R, b) of the estimation seed, 4.2.2):
//
//	b = bytes that passed - R * time
//
// # Method
//
// Method sends trains at 7/8 of the capacity (2.6.3). Each is four times as long as the silence after the one before, in
// which the receiver reports it, so that the bucket loses more than it gets. A train that is limited is followed by one
// a little above the rate at which it ended: at that rate it arrives, or others' traffic slowed the first one. If bytes
// and time allow, the path is then left idle for long enough to fill the bucket, and all is done again.
//
// # How far a result is known
//
// A bucket that was not full before the measurement, or that others used at the same time, shows less than its size. So
// what one measurement found is a lower bound, until another one found the same. Add joins the results of several
// measurements, of days or weeks.
//
// # Limitations
//
// Others' traffic uses tokens too. Where it is light the baseline is found, and not the bucket; where it is not, neither is.
//
// Bytes and time are those of the bucket: 5 GB at 10 Gbit/s need 6 GB and 5 s, and 32 s to fill again at 1.25 Gbit/s.
// Meanwhile others have an eighth of the link. A bucket whose rate is above 0.97 * 7/8 of the capacity does not show. Of
// several limiters, or buckets of one, the first shows that the measurement empties: a peak rate above the baseline passes
// for the baseline, if it is below 0.97 * 7/8 of the capacity.
package credits
