package probe

// Estimate is a value with its confidence interval, or the reason why there is no value.
type Estimate struct {
	Value float64 `json:"value,omitempty"`
	// Low and High are the 90 % confidence interval.
	Low  float64 `json:"low,omitempty"`
	High float64 `json:"high,omitempty"`
	// AtLeast marks Value as a lower bound; High is then unknown.
	AtLeast bool `json:"at_least,omitempty"`
	// Because is the reason why there is no estimate but only the bound of the trains that passed.
	Because string `json:"because,omitempty"`
	// Reason is the reason why there is no value.
	Reason string `json:"cannot_tell,omitempty"`
}

// Carried reports whether there is only the bound of the trains that passed, because there is no estimate.
func (e Estimate) Carried() bool { return e.AtLeast && e.Because != "" }

// WithoutCarried returns the estimate, or the reason why there is none where there is only the bound of the trains that passed.
func (e Estimate) WithoutCarried() Estimate {
	if e.Carried() {
		return NoEstimate(e.Because)
	}
	return e
}

// Widened returns the 99 % interval of an estimate, whose own is one of 90 %: 2.58 standard deviations instead of 1.64.
func (e Estimate) Widened() (low, high float64) {
	const more = 2.576 / 1.645
	return e.Value - more*(e.Value-e.Low), e.Value + more*(e.High-e.Value)
}

// Floor returns the lower end of an estimate as a bound, or the reason why there is none.
func (e Estimate) Floor(without string) Estimate {
	if !e.Known() || e.Low <= 0 {
		return NoEstimate(without)
	}
	return Estimate{Value: e.Low, Low: e.Low, AtLeast: true}
}

// Known reports whether there is a value.
func (e Estimate) Known() bool { return e.Reason == "" }

// NoEstimate returns an estimate without a value, and the reason for that.
func NoEstimate(because string) Estimate { return Estimate{Reason: because} }
