package cycle

import (
	"fmt"

	"headgate.dev/headgate/share"
)

// DefaultScheme is the name of the scheme of the product.
const DefaultScheme = "adaptive"

// SchemeNamed returns a scheme without flows: adaptive, or one that is compared with it: thesis, static, queues or hybrid.
func SchemeNamed(name string) (share.Scheme, error) {
	switch name {
	case DefaultScheme:
		return share.NewAdaptive(share.DefaultQuantum), nil
	case "thesis":
		return &share.AQoS{}, nil
	case "static":
		return &share.StaticMeters{}, nil
	case "queues":
		return &share.DiffServ{}, nil
	case "hybrid":
		return &share.Hybrid{}, nil
	}
	return nil, fmt.Errorf("%q is not a scheme of sharing: write adaptive, thesis, static, queues or hybrid", name)
}
