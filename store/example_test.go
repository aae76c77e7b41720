package store_test

import (
	"fmt"

	"headgate.dev/headgate/store"
)

// Parts of a name may have any characters.
func ExampleKey() {
	key := store.Key(store.Interfaces, "web1", "br/0")
	fmt.Println(key)
	kind, name := store.Name(key)
	fmt.Println(kind, name)
	fmt.Println(store.Prefix(store.Interfaces, "web1"))
	// Output:
	// /headgate/interfaces/web1/br%2F0
	// interfaces [web1 br/0]
	// /headgate/interfaces/web1/
}

// A group without an owner of its own has that of the nearest parent group; "" is the operator.
func ExampleInterface_Owner() {
	var eth0 store.Interface
	eth0.SetOwner("out", "shop", "tenant-1")
	fmt.Printf("%q %q\n", eth0.Owner("out", "shop/web"), eth0.Owner("out", "backup"))
	// Output: "tenant-1" ""
}
