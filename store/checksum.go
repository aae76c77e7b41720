package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// etcd's database has no checksums: an inverted bit on a disk changed a document without a word. So each document ends with the CRC32C
// of its key and text. It is written as white space of JSON, two bits a character, so that a controller of an earlier version, and a
// person, read the document as before.

// checksumSize is the size of a checksum in bytes.
const checksumSize = 16

// checksumDigits are the digits of a checksum.
const checksumDigits = " \t\n\r"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrDamaged means that a document is not as it was written.
var ErrDamaged = errors.New("damaged in the store: its checksum is wrong")

// withChecksum returns a document's text as it is stored.
func withChecksum(key string, text []byte) []byte {
	sum := crc32.Update(crc32.Checksum([]byte(key), castagnoli), castagnoli, text)
	out := append(make([]byte, 0, len(text)+checksumSize), text...)
	for ; len(out) < cap(out); sum >>= 2 {
		out = append(out, checksumDigits[sum&3])
	}
	return out
}

// withoutChecksum returns the text of a stored document, or ErrDamaged. A document of an earlier version has no checksum.
func withoutChecksum(key string, stored []byte) ([]byte, error) {
	n := len(stored) - checksumSize
	if n < 0 || strings.Trim(string(stored[n:]), checksumDigits) != "" {
		return stored, nil
	}
	if string(withChecksum(key, stored[:n])) != string(stored) {
		return nil, fmt.Errorf("document %s is %w", strings.TrimPrefix(key, prefix), ErrDamaged)
	}
	return stored[:n:n], nil
}

// Verify reads all documents of the member of etcd to which the store is connected, and returns ErrDamaged for one that is not as it was
// written.
func (s *Store) Verify(ctx context.Context) error {
	leaders := Key(Service, "leader") + "/" // written by etcd's client
	for from := Root; ; {
		got, err := s.client.Get(ctx, from, clientv3.WithRange(clientv3.GetPrefixRangeEnd(Root)), clientv3.WithLimit(verifyPage), clientv3.WithSerializable())
		if err != nil {
			return readError(err)
		}
		for _, kv := range got.Kvs {
			key := string(kv.Key)
			if strings.HasPrefix(key, leaders) {
				continue
			}
			text, err := withoutChecksum(key, kv.Value)
			if err == nil && !json.Valid(text) {
				err = fmt.Errorf("document %s is %w", strings.TrimPrefix(key, prefix), ErrDamaged)
			}
			if err != nil {
				return err
			}
		}
		if !got.More {
			return nil
		}
		from = string(got.Kvs[len(got.Kvs)-1].Key) + "\x00"
	}
}

// verifyPage is how many documents Verify reads at once: eight of the largest ones.
const verifyPage = 8
