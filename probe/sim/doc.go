// Package sim simulates trains over paths in virtual time: thousands of labelled paths in
// a minute, reproducible for the same seed. Estimators are tuned and checked on it, and
// the NS-2 figures of the estimation seed (2.7.3, 5.5) are reproduced. The behaviour of
// real kernels is measured in the lab.
//
// A path is a sequence of links of the lab's own model, lab/link: the shapers, limiters,
// losses and cross traffic that the lab's emulator puts between devices, and that are
// checked against their definitions there. A second model of the same token bucket is
// thereby avoided. Each train passes one hop after the other as a whole: the output of a
// hop is the input of the next one. That is correct as long as trains do not overlap and
// cross traffic leaves after one hop.
//
// Times are in ns; sizes and rates are those of layer 2.
package sim
