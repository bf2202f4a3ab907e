package receiver

import (
	"fmt"
	"net/netip"
)

// addresses are the networks that may deliver.
type addresses []netip.Prefix

func newAddresses(texts []string) (addresses, error) {
	var list addresses
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			var addr netip.Addr
			if addr, err = netip.ParseAddr(text); err == nil {
				prefix = netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen())
			}
		}
		if err != nil {
			return nil, fmt.Errorf("allow_ips: %q is no address; write 10.0.0.7 or 10.0.0.0/8", text)
		}
		list = append(list, prefix.Masked())
	}
	return list, nil
}

func (a addresses) has(text string) bool {
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return false
	}
	addr = addr.Unmap()
	for _, prefix := range a {
		if prefix.Contains(addr) {
			return true
		}
	}
	return false
}
