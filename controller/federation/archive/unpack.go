package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// Bounds of an archive.
const (
	MaxUnpacked = 20 << 20 // bytes in all files and their headers
	MaxFiles    = 2000
	MaxFileSize = 2 << 20 // bytes in one file
)

var errUnpacked = fmt.Errorf("it has more than %d bytes unpacked: distribute fewer or smaller objects", MaxUnpacked)

// Unpack returns the objects of an archive, in the order of their files. Names are not read. It
// returns an error if a bound is exceeded, or if a file is not a regular one.
func Unpack(archive []byte) ([][]byte, error) {
	zipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("unpacking an archive: %w", err)
	}
	// The headers count too: an archive may have many of them, and no files. One byte above the
	// bound tells an archive that exceeds it from one that ends there.
	unpacked := &io.LimitedReader{R: zipped, N: MaxUnpacked + 1}
	objects, err := readTar(tar.NewReader(unpacked))
	if err == nil {
		// What follows the tar is read for the checksum of gzip.
		_, err = io.Copy(io.Discard, unpacked)
	}
	if unpacked.N == 0 {
		err = errUnpacked
	}
	if err != nil {
		return nil, fmt.Errorf("unpacking an archive: %w", err)
	}
	return objects, nil
}

func readTar(from *tar.Reader) ([][]byte, error) {
	var objects [][]byte
	left := int64(MaxUnpacked) // a sparse file has bytes that are not in the archive
	for {
		header, err := from.Next()
		switch {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, err
		case header.Typeflag != tar.TypeReg:
			return nil, fmt.Errorf("file %d is not a regular file", len(objects)+1)
		case header.Size > MaxFileSize:
			return nil, fmt.Errorf("file %d has %d bytes, above the bound of %d", len(objects)+1, header.Size, MaxFileSize)
		case len(objects) == MaxFiles:
			return nil, fmt.Errorf("it has more than %d files: distribute fewer objects", MaxFiles)
		case header.Size > left:
			return nil, errUnpacked
		}
		left -= header.Size
		text, err := io.ReadAll(from)
		if err != nil {
			return nil, fmt.Errorf("file %d: %w", len(objects)+1, err)
		}
		objects = append(objects, text)
	}
}
