package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
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

// checksum returns the checksum of a document.
func checksum(key string, text []byte) (digits [checksumSize]byte) {
	sum := crc32.Update(crc32.Checksum([]byte(key), castagnoli), castagnoli, text)
	for i := range digits {
		digits[i] = checksumDigits[sum&3]
		sum >>= 2
	}
	return digits
}

// withChecksum returns a document's text as it is stored.
func withChecksum(key string, text []byte) []byte {
	sum := checksum(key, text)
	return append(text[:len(text):len(text)], sum[:]...)
}

// withoutChecksum returns the text of a stored document, or ErrDamaged. A document of an earlier version has no checksum.
func withoutChecksum(key string, stored []byte) ([]byte, error) {
	n := len(stored) - checksumSize
	if n < 0 || strings.Trim(string(stored[n:]), checksumDigits) != "" {
		return stored, nil
	}
	if checksum(key, stored[:n]) != [checksumSize]byte(stored[n:]) {
		return nil, damaged(key)
	}
	return stored[:n:n], nil
}

func damaged(key string) error {
	return fmt.Errorf("document %s is %w", strings.TrimPrefix(key, prefix), ErrDamaged)
}

// Verify reads all documents, from the member of etcd to which the store is connected, and returns ErrDamaged for one that is not as it
// was written.
func (s *Store) Verify(ctx context.Context) error {
	leaders := Key(Service, "leader") + "/" // written by etcd's client
	_, err := s.each(ctx, Root, 0, func(d Doc) error {
		if !strings.HasPrefix(d.Key, leaders) && !json.Valid(d.Value) {
			return damaged(d.Key)
		}
		return nil
	})
	return err
}
