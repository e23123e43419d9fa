package machines

import "context"

// Image is a container image in a file.
type Image struct {
	Name string // as containerd knows it: docker.io/library/gridproxy:dev
	Tar  string // its path, in the format of docker save
}

// Pause makes the image that every Pod's sandbox runs.
func Pause(ctx context.Context, dir string) (Image, error) { return Image{}, errNotYet }

// Echo makes the image superedge/echoserver:2.2, named as the manual's; see package main in echo.
func Echo(ctx context.Context, dir string) (Image, error) { return Image{}, errNotYet }

// Gridproxy makes the image gridproxy:dev of this source tree.
func Gridproxy(ctx context.Context, dir string) (Image, error) { return Image{}, errNotYet }
