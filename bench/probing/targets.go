package probing

import "headgate.dev/headgate/bench"

// Targets of the probe.
var (
	tokenRateOff     = bench.Target{Op: "<=", Value: 1, Unit: "%"}
	spentBytes       = bench.Target{Op: "<=", Value: 5, Unit: "MB"}
	spentSeconds     = bench.Target{Op: "<=", Value: 1, Unit: "s"}
	bucketOff        = bench.Target{Op: "<=", Value: 1, Unit: "of what is allowed"}
	boundTrue        = bench.Target{Op: ">=", Value: 95, Unit: "%"}
	capacityOff      = bench.Target{Op: "<=", Value: 3, Unit: "%"}
	estimateOff      = bench.Target{Op: "<=", Value: 2, Unit: "%"}
	availableOff     = bench.Target{Op: "<=", Value: 1, Unit: "of what is allowed"}
	availableTime    = bench.Target{Op: "<=", Value: 3, Unit: "s"}
	noAborts         = bench.Target{Op: "<=", Value: 0, Unit: "runs"}
	ratioOff         = bench.Target{Op: "<=", Value: 5, Unit: "%"}
	ratioOffHard     = bench.Target{Op: "<=", Value: 10, Unit: "%"}
	recalled         = bench.Target{Op: ">=", Value: 95, Unit: "%"}
	parameterOff     = bench.Target{Op: "<=", Value: 5, Unit: "%"}
	minCovers        = bench.Target{Op: ">=", Value: 85, Unit: "%"}
	maxCovers        = bench.Target{Op: "<=", Value: 95, Unit: "%"}
	maxWidth         = bench.Target{Op: "<=", Value: 2, Unit: "of the p90 error"}
	abstentions      = bench.Target{Op: "<=", Value: 2, Unit: "%"}
	harmDelay        = bench.Target{Op: "<=", Value: 10, Unit: "ms"}
	harmLoss         = bench.Target{Op: "<=", Value: 0.1, Unit: "%"}
	tunedLoss        = bench.Target{Op: "<=", Value: 1, Unit: "% of that without"}
	tunedGoodput     = bench.Target{Op: ">=", Value: 97, Unit: "%"}
	guaranteed       = bench.Target{Op: ">=", Value: 99, Unit: "%"}
	namedRight       = bench.Target{Op: ">=", Value: 95, Unit: "%"}
	wrongAnswers     = bench.Target{Op: "<=", Value: 1, Unit: "%"}
	calibrated       = bench.Target{Op: "<=", Value: 5, Unit: "points"}
	creditsRateOff   = bench.Target{Op: "<=", Value: 2, Unit: "%"}
	creditsBucketOff = bench.Target{Op: "<=", Value: 10, Unit: "%"}
	noneFalse        = bench.Target{Op: "<=", Value: 0, Unit: "answers"}
	slowSeconds      = bench.Target{Op: "<=", Value: 3, Unit: "s"}
	slowBytes        = bench.Target{Op: "<=", Value: 400, Unit: "kB"}
	slowLost         = bench.Target{Op: "<=", Value: 2, Unit: "%"}
	trend            = bench.Target{Op: "<=", Value: 0, Unit: "steps against it"}
)

// rows are the rows of the table of targets.
var rows = []bench.Row{
	{ID: "tokenrate", What: "R 50 to 2,000 Mbit/s (lab to 1,000), bucket 1.6 KB to 1 MB, cross 0 to 50 %: p90 <= 1 %; <= 5 MB, <= 1 s where the bucket drains within it. Bytes and seconds are those of the capacity that it needs as well."},
	{ID: "bucket", What: "As above, and 100 MB: at cross 0 p90 error <= max(2 %, one packet, R x 2 us); under cross traffic a bound true in >= 95 %; else the joint bound."},
	{ID: "capacity", What: "Lab 100 to 1,000 Mbit/s, simulator to 10 Gbit/s; shapers 200/400/600 Mbit/s with 1.6/10/100 KB before or after (figure 2.17): p90 <= 3 %."},
	{ID: "where", What: "Figures 2.8 to 2.16 (mode shares: 0.2 -> 11 % at C by packet size; 1.4 -> 3.5 -> 5.3 % at R), 2.20, 2.21 (R 800/600/400/200, C 1 Gbit/s): the shares' trend; estimates <= 2 %."},
	{ID: "available", What: "100 to 800 of 1,000 Mbit/s; figure 5.16 (tick path 10 to 90 % loaded); (N0, T0) = 200/1000, 1/5/10 ms, suspended below the timestamp: against the available bandwidth realised in the probe's own window p90 <= max(8 %, 2 % of C); <= 5 MB, <= 3 s; 0 aborts in 300 simulated and 50 lab runs."},
	{ID: "compare", What: "Ratios 1 to 8, cross 10 to 60 % on either path (figures 3.13 to 3.24): p90 <= 5 %; at 60 % on the fast path <= 10 % or \"cannot tell\"."},
	{ID: "limiter", What: "Held-out simulated paths, and lab limiters, tables 4.2 to 4.4 as profiles: recall >= 95 % of every class, \"none\" included; T and delta (15 ms; 6.5, 130, 260 packets) within 5 %."},
	{ID: "honest", What: "Every estimator's 90 % interval covers the truth in 85 to 95 % of 300 runs; median width <= 2 x p90 error; abstentions <= 2 %, listed."},
	{ID: "harm", What: "A bystander's ping and loss on the path during `probe path`: p99 + <= 10 ms, loss <= 0.1 %."},
	{ID: "wrong", What: "adversarial draw: hops 1 to 5, 0 to 3 limiters in series, queues 16 packets to 1 s, tail drop/RED/CoDel, decay, gifts, grouping, loss 0 to 3 %, jitter, reordering, cross 0 to 90 %, 1 Mbit/s to 40 Gbit/s; 2,000 simulated paths, 200 lab runs, held-out seed: value outside its own 99 % interval, or a false bound, or a wrong class above 0.9: <= 1 % of answers"},
	{ID: "useful", What: "the same draw: an answer for capacity >= 95 %, token rate, class, available >= 90 % of the paths where a method with the same bytes could answer. A bound below half of the true value, a type with a confidence below 0.5, and \"none\" where half of the bytes empty a limiter's bucket, are no answers"},
	{ID: "calibration", What: "the same: 90 % intervals cover 85 to 95 %; stated confidence against outcomes within 5 points in each tenth"},
	{ID: "named", What: "the ten kinds of links on which the probe was found wrong: right, or \"cannot tell\" with the true reason, in >= 19 of 20 runs each"},
	{ID: "credits", What: "5 Gbit/750 Mbit/30 MB, and 10 Gbit/1.25 Gbit/gigabytes, over a day of the schedule in virtual time: baseline and burst <= 2 %, bucket <= 10 %, false \"none\" never."},
	{ID: "slow", What: "0.5 to 10 Mbit/s: <= 3 s, <= 400 kB, harm <= 10 ms. Loss of the probe's own packets on links that drop <= 2 %."},
	{ID: "peers", What: "iperf3; the figures of pathload, pathrate and the tool of RFC 9097's authors as cited: printed beside"},
	{ID: "tune", What: "A provider limit of 500 Mbit/s, 5 MB bucket; groups set by `tune`: guarantees as in the groups bench; loss at the provider <= 1 % of that without; goodput >= 97 % of what R allows."},
}
