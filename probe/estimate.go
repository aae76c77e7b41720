package probe

// Estimate is a number with how sure it is, or the reason why there is none.
type Estimate struct {
	Value float64 `json:"value,omitempty"`
	// Low and High hold 90 % of what the method would say of the same path.
	Low  float64 `json:"low,omitempty"`
	High float64 `json:"high,omitempty"`
	// AtLeast: Value is a bound from below, and High unknown.
	AtLeast bool `json:"at_least,omitempty"`
	// Cannot says why there is no value: "cannot tell, because ...".
	Cannot string `json:"cannot_tell,omitempty"`
}

// Known tells whether there is a value.
func (e Estimate) Known() bool { return e.Cannot == "" }

// CannotTell is an estimate without a value.
func CannotTell(because string) Estimate { return Estimate{Cannot: because} }
