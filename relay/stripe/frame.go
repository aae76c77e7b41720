package stripe

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// Kind is the kind of a frame. The values are those on the wire.
type Kind uint8

// The kinds of frames.
const (
	// Data carries a chunk of a connection: Offset, Payload, and Fin on the last chunk of the direction.
	Data Kind = iota + 1
	// Open opens a connection; Payload describes it, in the terms of the caller.
	Open
	// Opened answers Open: the connection can carry data.
	Opened
	// Reset ends a connection at once in both directions; Payload is the reason, in words.
	Reset
	// Credit permits the other agent to send the bytes of a connection up to Offset.
	Credit
	// Ack acknowledges the first Offset frames of the stream with the number Conn. Fin tells that the agent has more
	// to send than its streams take.
	Ack
	// Ping asks for an acknowledgement. With Fin it carries what agents tell each other apart from connections: the caller
	// handles it.
	Ping
	// Congestion selects the congestion control with the name in Payload for what the other agent sends on the stream
	// with the number Conn; Fin forbids others while the stream is idle.
	Congestion
	// Blocked tells that the agent has more to send of a connection than the credit up to Offset permits.
	Blocked

	lastKind = Blocked
)

// Frame is what streams carry.
type Frame struct {
	Kind    Kind
	Conn    uint32 // the connection, or the stream of an Ack or Congestion
	Offset  uint64
	Fin     bool
	Payload []byte
}

// MaxPayload is the largest payload of a frame. Two TCP super-packets of 64 KiB are on the way while the next is
// made, and a chunk of 64 KiB holds back others on the same stream for 5 ms at 100 Mbit/s.
const MaxPayload = 64 << 10

const (
	finFlag    = 0x10
	kindMask   = 0x0f
	maxHeader  = 1 + 3*binary.MaxVarintLen64
	crcBytes   = 4
	knownFlags = finFlag
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendHeader appends the encoding of a frame except for its payload, which follows it on the wire: a byte with
// the kind and flags, then as variable-length integers the connection, the offset and the length of the payload,
// then the CRC-32C of all that and of the payload. A chunk of 64 KiB has a header of 12 to 15 bytes (0.02 %).
func AppendHeader(b []byte, f Frame) []byte {
	began := len(b)
	first := byte(f.Kind)
	if f.Fin {
		first |= finFlag
	}
	b = append(b, first)
	b = binary.AppendUvarint(b, uint64(f.Conn))
	b = binary.AppendUvarint(b, f.Offset)
	b = binary.AppendUvarint(b, uint64(len(f.Payload)))
	sum := crc32.Update(crc32.Checksum(b[began:], castagnoli), castagnoli, f.Payload)
	return binary.LittleEndian.AppendUint32(b, sum)
}

// ErrFrame means that a stream carries what is no frame: the stream must end, because no later frame can be found.
var ErrFrame = errors.New("malformed frame")

// ReadFrame reads one frame. alloc returns the memory for a payload of a size. An error that is not one of r is
// ErrFrame; io.EOF means that r ended between frames.
func ReadFrame(r *bufio.Reader, alloc func(size int) []byte) (f Frame, err error) {
	first, err := r.ReadByte()
	if err != nil {
		return f, err
	}
	header := append(make([]byte, 0, maxHeader), first)
	f.Kind, f.Fin = Kind(first&kindMask), first&finFlag != 0
	if f.Kind == 0 || f.Kind > lastKind || first&^(kindMask|knownFlags) != 0 {
		return f, fmt.Errorf("%w: unknown kind or flags %#x", ErrFrame, first)
	}
	var numbers [3]uint64
	for n := range numbers {
		if numbers[n], header, err = readUvarint(r, header); err != nil {
			return f, err
		}
	}
	conn, offset, size := numbers[0], numbers[1], numbers[2]
	switch {
	case conn > 1<<32-1:
		return f, fmt.Errorf("%w: number %d of a connection", ErrFrame, conn)
	case size > MaxPayload:
		return f, fmt.Errorf("%w: payload of %d bytes, the maximum is %d", ErrFrame, size, MaxPayload)
	case offset > maxOffset:
		return f, fmt.Errorf("%w: offset %d", ErrFrame, offset)
	}
	f.Conn, f.Offset = uint32(conn), offset
	var sum [crcBytes]byte
	if _, err := io.ReadFull(r, sum[:]); err != nil {
		return f, unexpected(err)
	}
	if size > 0 {
		f.Payload = alloc(int(size))[:size]
		if _, err := io.ReadFull(r, f.Payload); err != nil {
			return f, unexpected(err)
		}
	}
	if crc32.Update(crc32.Checksum(header, castagnoli), castagnoli, f.Payload) != binary.LittleEndian.Uint32(sum[:]) {
		return f, fmt.Errorf("%w: checksum", ErrFrame)
	}
	return f, nil
}

// maxOffset leaves room for sums of offsets and sizes.
const maxOffset = 1 << 62

func readUvarint(r *bufio.Reader, header []byte) (v uint64, _ []byte, err error) {
	for shift := 0; shift < 64; shift += 7 {
		b, err := r.ReadByte()
		if err != nil {
			return 0, header, unexpected(err)
		}
		header = append(header, b)
		if shift == 63 && b > 1 {
			break
		}
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v, header, nil
		}
	}
	return 0, header, fmt.Errorf("%w: a number has more than 64 bits", ErrFrame)
}

// unexpected is the error of a stream that ends within a frame.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
