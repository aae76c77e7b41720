package server

import (
	"fmt"
	"io"
	"net/http"

	"headgate.dev/headgate/store"
)

// Bounds of sizes in bytes, chosen by this project. caps.go has those of one tenant.
const (
	// maxHostBytes is of the documents of a host: an agent reads all of them when it connects.
	maxHostBytes = 24 << 20
	// maxTenantBody is the largest body of a tenant's request: twice what a tenant may have on a device.
	maxTenantBody = 2 * maxTenantBytes
	// bytesPerRequest is how many bytes of a tenant count as one request of its rate limit: those that it sends, and those that it has in the document that
	// it changes, which is written, sent and read again as a whole.
	bytesPerRequest = 16 << 10
)

// Stored is the size of what the service has, in bytes.
type Stored struct {
	Host   int // documents of a host
	Tenant int // groups and connections of a tenant
	Device int // those on the device
}

// chargeRead counts a read of a device on which a tenant has much as several requests.
func (s *Server) chargeRead(by store.Token, host, dev string) {
	if by.Tenant != "" && s.StoredBeside != nil {
		s.rateLimits.charge(by, s.StoredBeside(host, dev, by.Tenant).Device/bytesPerRequest)
	}
}

// putInterfaceDocument writes an interface, and refuses one with which a tenant or the host has more than it may have. A tenant to which an operator
// has given more than that may keep or reduce it.
func (c *changeRequest) putInterfaceDocument(host string, before, next *store.Interface) error {
	key := interfaceKey(host, next.Dev)
	if err := c.tx.Put(key, next); err != nil {
		return err
	}
	var others Stored
	if c.server.StoredBeside != nil {
		others = c.server.StoredBeside(host, next.Dev, c.by.Tenant)
	}
	if all := others.Host + c.tx.Size(key); all > maxHostBytes {
		return refuse(http.StatusRequestEntityTooLarge, "the documents of host %s would have %d bytes together, and at most %d are possible: make them smaller", host, all, maxHostBytes)
	}
	if c.by.Tenant == "" {
		return nil
	}
	has := next.TenantBytes()[c.by.Tenant]
	c.tenantBytes = has
	for _, bound := range []struct {
		where string
		has   int
		most  int
	}{{next.Dev, has, maxTenantBytes}, {"all devices together", others.Tenant + has, maxTenantTotal}} {
		if bound.has > bound.most && has > before.TenantBytes()[c.by.Tenant] {
			return invalidField("groups", fmt.Errorf("quota exceeded: the groups and connections of tenant %s would have %d bytes on %s, and at most %d are possible: use fewer or shorter names, rules and lists", c.by.Tenant, bound.has, bound.where, bound.most))
		}
	}
	return nil
}

// countedBody counts the bytes of a body that are read.
type countedBody struct {
	io.ReadCloser
	read int
}

func (b *countedBody) Read(p []byte) (n int, err error) {
	n, err = b.ReadCloser.Read(p)
	b.read += n
	return n, err
}
