// Package sim sends trains over paths that exist in virtual time only: thousands of
// labelled paths in a minute, the same for the same seed. Estimators are tuned and
// checked on it, and the estimation seed's NS-2 figures (2.7.3, 5.5) are measured
// again; what a real kernel does is the lab's to say.
//
// A path is links of the lab's own model, lab/link, in a row: the shapers, limiters,
// losses and cross traffic that the lab's emulator puts between devices, and which
// are held against their definitions there. Two models of one token bucket would be
// one too many. Each train passes hop by hop, whole: a hop's output is the next
// one's input, which is right as long as trains do not overlap, and cross traffic
// leaves where it came.
//
// Times are ns; sizes and rates are those of layer 2.
package sim
