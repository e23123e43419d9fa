package main

import (
	"debug/elf"
	"fmt"
)

// Arch is an architecture that the image is made for.
type Arch struct {
	Debian  string // Debian's name
	Triplet string // the folder of its libraries
	Machine elf.Machine
	Class   elf.Class
}

// ParseArch returns the architecture with Debian's or Go's name, or an error if the image is
// not made for it. Go's arm is armhf: the binaries are built with GOARM=7.
func ParseArch(name string) (Arch, error) {
	switch name {
	case "amd64":
		return Arch{"amd64", "x86_64-linux-gnu", elf.EM_X86_64, elf.ELFCLASS64}, nil
	case "arm64":
		return Arch{"arm64", "aarch64-linux-gnu", elf.EM_AARCH64, elf.ELFCLASS64}, nil
	case "armhf", "arm":
		return Arch{"armhf", "arm-linux-gnueabihf", elf.EM_ARM, elf.ELFCLASS32}, nil
	}
	return Arch{}, fmt.Errorf("architecture %q is unknown: use amd64, arm64 or armhf", name)
}
